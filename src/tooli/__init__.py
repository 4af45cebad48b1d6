"""tooli: turn typed functions into a command line, an MCP server, an HTTP API and Python calls.

Every name is loaded when it is first used. `import tooli` imports nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Annotated as Annotated

    from typer import Argument as Argument
    from typer import Option as Option

    from tooli.app import Tooli as Tooli
    from tooli.core.call import Call as Call
    from tooli.core.call import Failed as Failed
    from tooli.core.call import Ok as Ok
    from tooli.core.depends import Depends as Depends
    from tooli.core.enums import ErrorCategory as ErrorCategory
    from tooli.core.enums import SecurityPolicy as SecurityPolicy
    from tooli.core.peer import Elicit as Elicit
    from tooli.core.peer import Roots as Roots
    from tooli.core.peer import Sample as Sample
    from tooli.core.result_types import Audio as Audio
    from tooli.core.result_types import Embedded as Embedded
    from tooli.core.result_types import Image as Image
    from tooli.core.result_types import Link as Link
    from tooli.core.result_types import Message as Message
    from tooli.core.result_types import Next as Next
    from tooli.core.result_types import Page as Page
    from tooli.core.result_types import Partial as Partial
    from tooli.detect import ExecutionContext as ExecutionContext
    from tooli.detect import detect_execution_context as detect_execution_context
    from tooli.detect.categories import CallerCategory as CallerCategory
    from tooli.errors import ApprovalRequired as ApprovalRequired
    from tooli.errors import AuthError as AuthError
    from tooli.errors import ConflictError as ConflictError
    from tooli.errors import DefinitionError as DefinitionError
    from tooli.errors import DependencyError as DependencyError
    from tooli.errors import FormatError as FormatError
    from tooli.errors import InputError as InputError
    from tooli.errors import InternalError as InternalError
    from tooli.errors import NotFoundError as NotFoundError
    from tooli.errors import PartialFailure as PartialFailure
    from tooli.errors import StateError as StateError
    from tooli.errors import Suggestion as Suggestion
    from tooli.errors import TemporaryError as TemporaryError
    from tooli.errors import TimeoutExceeded as TimeoutExceeded
    from tooli.errors import ToolError as ToolError
    from tooli.errors import ToolRuntimeError as ToolRuntimeError
    from tooli.inputs.constraints import Identifier as Identifier
    from tooli.inputs.constraints import InputLimits as InputLimits
    from tooli.inputs.constraints import Verbatim as Verbatim
    from tooli.inputs.constraints import Within as Within
    from tooli.inputs.output import Output as Output
    from tooli.inputs.secret import SecretInput as SecretInput
    from tooli.inputs.source import Input as Input
    from tooli.inputs.source import StdinOr as StdinOr
    from tooli.pipeline.context import Context as AgentContext
    from tooli.pipeline.context import Context as Context
    from tooli.pipeline.dry_run_recorder import dry_run_support as dry_run_support
    from tooli.pipeline.dry_run_recorder import record_dry_action as record_dry_action
    from tooli.pipeline.prepared_call import TooliError as TooliError
    from tooli.pipeline.prepared_call import TooliResult as TooliResult
    from tooli.schema.detail_fields import Detail as Detail

_LAZY_IMPORTS = {
    "tooli.app": ("Tooli",),
    "tooli.schema.param_info": ("Option", "Argument"),
    "typing": ("Annotated",),
    "tooli.pipeline.context": ("Context",),
    "tooli.pipeline.dry_run_recorder": ("dry_run_support", "record_dry_action"),
    "tooli.pipeline.prepared_call": ("TooliResult", "TooliError"),
    "tooli.core.result_types": (
        *("Next", "Page", "Partial", "Audio", "Embedded", "Image", "Link", "Message"),
    ),
    "tooli.schema.detail_fields": ("Detail",),
    "tooli.detect": ("ExecutionContext", "detect_execution_context"),
    "tooli.detect.categories": ("CallerCategory",),
    "tooli.core.call": ("Call", "Failed", "Ok"),
    "tooli.core.depends": ("Depends",),
    "tooli.core.enums": ("ErrorCategory", "SecurityPolicy"),
    "tooli.core.peer": ("Elicit", "Roots", "Sample"),
    "tooli.errors": (
        *("ApprovalRequired", "AuthError", "ConflictError", "DefinitionError", "DependencyError"),
        *("FormatError", "InputError", "InternalError", "NotFoundError", "PartialFailure"),
        *(
            "StateError",
            "Suggestion",
            "TemporaryError",
            "TimeoutExceeded",
            "ToolError",
            "ToolRuntimeError",
        ),
    ),
    "tooli.inputs.source": ("StdinOr", "Input"),
    "tooli.inputs.constraints": ("Identifier", "InputLimits", "Verbatim", "Within"),
    "tooli.inputs.secret": ("SecretInput",),
    "tooli.inputs.output": ("Output",),
}
"""The public names, by the module that defines them."""

_NAMES = [name for names in _LAZY_IMPORTS.values() for name in names]
__all__ = ["AgentContext", "typer", *_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("tooli")
    if name == "typer":
        import tooli.typer

        return tooli.typer
    attribute = "Context" if name == "AgentContext" else name
    for module_name, names in _LAZY_IMPORTS.items():
        if attribute in names:
            module = __import__(module_name, fromlist=(attribute,))
            value = globals()[name] = getattr(module, attribute)
            return value
    raise AttributeError(f"module 'tooli' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
