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
    from tooli.detect import CallerCategory as CallerCategory
    from tooli.detect import ExecutionContext as ExecutionContext
    from tooli.detect import detect_execution_context as detect_execution_context
    from tooli.errors import ApprovalRequired as ApprovalRequired
    from tooli.errors import AuthError as AuthError
    from tooli.errors import ConflictError as ConflictError
    from tooli.errors import DefinitionError as DefinitionError
    from tooli.errors import DependencyError as DependencyError
    from tooli.errors import FormatError as FormatError
    from tooli.errors import InputError as InputError
    from tooli.errors import InternalError as InternalError
    from tooli.errors import NotFoundError as NotFoundError
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

_ERRORS = (
    *("ApprovalRequired", "AuthError", "ConflictError", "DefinitionError", "DependencyError"),
    *("FormatError", "InputError", "InternalError", "NotFoundError", "StateError"),
    *("Suggestion", "TemporaryError", "TimeoutExceeded", "ToolError", "ToolRuntimeError"),
)
_LAZY_IMPORTS = {
    "Tooli": "tooli.app",
    "Option": "tooli.schema.param_info",
    "Argument": "tooli.schema.param_info",
    "Annotated": "typing",
    "Context": "tooli.pipeline.context",
    "dry_run_support": "tooli.pipeline.dry_run_recorder",
    "record_dry_action": "tooli.pipeline.dry_run_recorder",
    "TooliResult": "tooli.pipeline.prepared_call",
    "TooliError": "tooli.pipeline.prepared_call",
    "Next": "tooli.core.result_types",
    "Detail": "tooli.schema.detail_fields",
    "Page": "tooli.core.result_types",
    "CallerCategory": "tooli.detect",
    "ExecutionContext": "tooli.detect",
    "detect_execution_context": "tooli.detect",
    **dict.fromkeys(("Call", "Failed", "Ok"), "tooli.core.call"),
    **dict.fromkeys(("Audio", "Embedded", "Image", "Link", "Message"), "tooli.core.result_types"),
    **dict.fromkeys(("Elicit", "Roots", "Sample"), "tooli.core.peer"),
    **dict.fromkeys(_ERRORS, "tooli.errors"),
    **dict.fromkeys(("StdinOr", "Input"), "tooli.inputs.source"),
    **dict.fromkeys(
        ("Identifier", "InputLimits", "Verbatim", "Within"), "tooli.inputs.constraints"
    ),
    "SecretInput": "tooli.inputs.secret",
    "Output": "tooli.inputs.output",
}

__all__ = ["AgentContext", "typer", *_LAZY_IMPORTS]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    module_name = _LAZY_IMPORTS.get("Context" if name == "AgentContext" else name)
    if module_name is None:
        if name == "__version__":
            from importlib.metadata import version

            return version("tooli")
        if name == "typer":
            import tooli.typer

            return tooli.typer
        raise AttributeError(f"module 'tooli' has no attribute {name!r}")
    module = __import__(module_name, fromlist=(name,))
    value = getattr(module, "Context" if name == "AgentContext" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
