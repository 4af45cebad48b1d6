"""Read the inputs and secrets of a call, and commit or discard its output files."""

from __future__ import annotations

from contextlib import aclosing

from tooli.core.call import Failed
from tooli.core.call_secrets import ReceivedSecret, call_secrets, iter_secrets
from tooli.core.secret_fields import may_contain_secret
from tooli.core.tool import (
    ListOf,
    ParsedText,
    TyperOnly,
    is_structured,
    item_shape,
    unwrap_optional,
)
from tooli.errors import PartialFailure
from tooli.execution.daemon_thread import call_in_daemon_thread
from tooli.inputs.formats import read_content
from tooli.inputs.output import Output
from tooli.inputs.secret import SecretInput
from tooli.inputs.source import Input, SourceShape
from tooli.pipeline.drivers import CO_ASYNC_GENERATOR, CO_COROUTINE, code_flags
from tooli.pipeline.failure import mark_not_started
from tooli.schema import Converted, RawText
from tooli.text.jsonable import iter_items
from tooli.text.secret_forms import SecretForms

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from typing import Any

    from tooli.core.call import Call, StageRun
    from tooli.core.tool import Param, Tool
    from tooli.inputs.output_target import OutputFolder


def track_secrets(call: Call) -> StageRun:
    """Collect the secrets of a call, so that no output contains them.

    It collects them even if an inner stage rejects the call. `pipeline/present.py` redacts them
    from all output of the call.
    """
    secrets = call.secrets
    if secrets is None:
        return (yield call)
    for settings in call.tool.settings:
        secrets += settings.secrets()
    for param in call.tool.params:
        secrets += iter_secrets(param.default, set())
        if may_contain_secret(param):
            secrets += _iter_received(param, call.arguments.get(param.name))
    previous = call_secrets.get()
    call_secrets.set(secrets)
    try:
        return (yield call)
    finally:
        call_secrets.set(previous)
        _warn_about_command_line(call)


def _iter_received(param: Param, value: object) -> Iterator[Any]:
    """Yield the secrets in an argument that is not converted yet.

    Text for a secret of pydantic is one of them. The author's parser and callback get this text,
    and may show it in their errors.
    """
    value = value.value if isinstance(value, Converted) else value
    yield from iter_secrets(value, set())
    if isinstance(item_shape(param.shape), (ParsedText, TyperOnly)):
        for text in value.texts if isinstance(value, RawText) else iter_items(value):
            if isinstance(text, (str, bytes)):
                yield ReceivedSecret(text)


def _warn_about_command_line(call: Call) -> None:
    """Add a warning for each argument that contains a secret on the command line.

    A SecretInput takes the location of a secret there. The secrets of pydantic, and secrets in an
    object, are passed as they are.
    """
    secrets = call.secrets
    for param in call.tool.public_params if secrets else ():
        raw = call.arguments.get(param.name)
        if isinstance(raw, RawText) and raw.is_cli_text and may_contain_secret(param):
            texts = [*raw.texts, *[text for part in (raw.dotted or {}).values() for text in part]]
            forms = SecretForms(secrets or ()).texts
            if any([form in text for text in texts for form in forms]):
                hint = ": pass the object as @FILE" if is_structured(param.shape) else ""
                call.warnings.append(
                    f"{param.name!r} contains a secret, and other users of this machine can read "
                    f"the command line{hint}"
                )


def read_secrets(call: Call) -> StageRun:
    """Read the secrets that the caller passes by reference: `@FILE`, `env:NAME`, stdin.

    The stages after it write to the audit log, to stores and to plans. They can hide only secrets
    whose values are known.
    """
    for secret in call.secrets or ():
        secret.load()
    return (yield call)


def open_handles(call: Call) -> StageRun:
    """Open inputs and secrets; put output files in place, or discard them.

    A stage cannot await, so it wraps the function, and the wrapper reads the inputs.
    """
    handles = list(_iterate_handles(call.tool.arguments_by_param(call.arguments)))
    for handle in handles:
        if isinstance(handle, Input):
            handle.warn = call.warnings.append
            handle.is_remote = call.caller.is_remote and handle.tooli_location is not None
    outputs = [handle for handle in handles if isinstance(handle, Output)]
    folders: dict[str, OutputFolder] = {}
    try:
        try:
            for handle in handles:
                if not isinstance(handle, Output) and handle.has_rules:
                    _open_now(handle)
            for output in outputs:
                output.prepare(folders)
        except Exception as error:
            mark_not_started(error)
            raise
        outcome = yield call.replace(tool=call.tool.replace(fn=_wrap_function(call.tool)))
        if not isinstance(outcome, Failed) or isinstance(outcome.error, PartialFailure):
            for output in outputs:  # before the first one is replaced
                output.verify()
            for output in outputs:
                output.commit()
        return outcome
    finally:
        for output in outputs:
            output.discard()  # does nothing after a commit
        for handle in handles:
            if isinstance(handle, Input):
                handle.close()


def _open_now(handle: Any) -> None:
    """Check and open a file that the caller has named, before the function can replace it.

    What cannot be opened is reported when it is read.
    """
    if isinstance(handle, Input):
        try:
            handle.hold()
        except (OSError, ValueError):
            return
    elif handle.tooli_location is not None:
        handle.load()


def _iterate_handles(arguments: Mapping[str, Any]) -> Iterator[Any]:
    for value in arguments.values():
        for item in iter_items(value):
            if isinstance(item, (Input, Output, SecretInput)):
                yield item


def _wrap_function(tool: Tool) -> Callable[..., object]:
    """Return a function that reads the inputs and secrets, then calls the function of the tool."""
    fn = tool.fn
    flags = code_flags(fn)

    def load(arguments: dict[str, object]) -> dict[str, object]:
        try:
            return {**arguments, **dict(_load_inputs(tool, arguments))}
        except Exception as error:
            mark_not_started(error)
            raise

    async def load_in_thread(arguments: dict[str, object]) -> dict[str, object]:
        return await call_in_daemon_thread(load, arguments)

    if flags & CO_ASYNC_GENERATOR:

        async def run_stream(**arguments: object) -> AsyncGenerator[object]:
            async with aclosing(fn(**await load_in_thread(arguments))) as items:
                async for item in items:
                    yield item

        return run_stream
    if flags & CO_COROUTINE:

        async def run_async(**arguments: object) -> object:
            return await fn(**await load_in_thread(arguments))

        return run_async

    def run_sync(**arguments: object) -> object:
        return fn(**load(arguments))

    return run_sync


def _load_inputs(tool: Tool, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the content of each input by name, and read the secrets."""
    values = tool.arguments_by_param(arguments)
    for param in tool.public_params:
        shape = unwrap_optional(param.shape)
        value = values.get(param.name)
        for item in iter_items(value):
            if isinstance(item, SecretInput):
                item.load()  # pyright: ignore[reportUnknownMemberType]
        if isinstance(shape, ListOf):
            if isinstance(shape.item, SourceShape) and value is not None:
                annotation = shape.item.annotation
                yield (
                    param.name,
                    shape.container([read_content(item, annotation) for item in value]),
                )
        elif isinstance(shape, SourceShape) and isinstance(value, Input):
            yield param.name, read_content(value, shape.annotation)
