"""resources list|read and prompts list|get: the resources and prompts of the app."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from tooli.builtins import lists_everything
from tooli.core.call import Call, Failed
from tooli.errors import InputError, Suggestion
from tooli.pipeline.context import Context  # noqa: TC001  the annotation is evaluated
from tooli.pipeline.drivers import run
from tooli.pipeline.present import Presented
from tooli.providers.resources import texts_to_arguments
from tooli.schema.param_info import Argument
from tooli.serving.served_functions import (
    list_prompts,
    list_resources,
    prompt_request,
    resource_call,
)
from tooli.text.jsonable import is_object

JsonValue: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None
"""The result of a resource: a command whose type is `Any` would only print."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App
    from tooli.core.tool import Tool


def add_resources(group: App, app: App) -> None:
    """Add `resources list` and `resources read`."""

    @group.command("list")
    @lists_everything
    def list_() -> list[dict[str, Any]]:
        """List the resources: their URIs or URI templates, and what they contain."""
        return list_resources(app)

    @group.command("read")
    def read(
        ctx: Context,
        uri: Annotated[str, Argument(help="The URI of the resource, such as notes://1.")],
    ) -> JsonValue:
        """Read a resource."""
        return _run(app, *resource_call(app, uri), ctx)


def add_prompts(group: App, app: App) -> None:
    """Add `prompts list` and `prompts get`."""

    @group.command("list")
    @lists_everything
    def list_() -> list[dict[str, Any]]:
        """List the prompts and their arguments."""
        return list_prompts(app)

    @group.command("get")
    def get(
        ctx: Context,
        name: Annotated[str, Argument(help="The name of the prompt.")],
        arguments: Annotated[
            list[str] | None,
            Argument(help="The arguments: name=value words, or one JSON object."),
        ] = None,
    ) -> dict[str, Any]:
        """Fill in a prompt, and return its messages."""
        texts = read_prompt_arguments(arguments or [])
        tool = prompt_request(app, name)
        return _run(app, tool, texts_to_arguments(tool, texts), ctx)


def read_prompt_arguments(words: list[str]) -> dict[str, str]:
    """Return the arguments in `name=value` words, or in one JSON object."""
    if len(words) == 1 and words[0].lstrip()[:1] == "{":
        return _read_json(words[0])
    texts: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name in texts:
            problem = "is given twice" if name in texts else "is not name=value"
            raise _argument_error(f"The argument {word!r} {problem}.")
        texts[name] = text
    return texts


def _read_json(text: str) -> dict[str, str]:
    from json import dumps, loads

    try:
        value = loads(text)
    except (ValueError, RecursionError):
        value = None
    if not is_object(value):
        raise _argument_error("The arguments are not a JSON object.")
    return {name: v if isinstance(v, str) else dumps(v) for name, v in value.items()}


def _argument_error(message: str) -> InputError:
    fix = 'Write name=value words, or one JSON object such as \'{"language": "en"}\'.'
    suggestion = Suggestion("retry_with_modified_input", fix)
    return InputError(message, code="E1003", field="arguments", suggestion=suggestion)


def _run(app: App, tool: Tool, arguments: dict[str, Any], ctx: Context) -> Any:
    """Run the function of a resource or prompt as a call of its own, for the same caller."""
    outer = ctx.options
    options = outer.replace(result_options=None, idempotency_key=None, given=None, apply=None)
    call, stages = app.prepare(Call(tool, arguments, ctx.caller, [], options))
    outcome = run(call, stages)
    for warning in call.warnings:
        ctx.warn(warning)
    presented = Presented(outcome, call, lambda: 0)
    if isinstance(outcome, Failed):
        raise presented.error or outcome.error
    return presented.value()
