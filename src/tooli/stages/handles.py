"""Open the inputs, secrets and output files of a call, and put the output files in place."""

from __future__ import annotations

from tooli.core.call import Failed
from tooli.core.tool import ListOf, unwrap_optional
from tooli.inputs.output import Output
from tooli.inputs.secret import SecretInput, call_secrets
from tooli.inputs.source import Input, SourceShape
from tooli.pipeline.failure import mark_not_started
from tooli.text.jsonable import iter_items

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.core.tool import Tool

_COROUTINE, _ASYNC_STREAM = 0x80, 0x200  # flags of a code object


def track_secrets(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Collect the secrets of a call, even if an inner stage rejects it.

    `pipeline/present.py` redacts them from all output of the call.
    """
    secrets = call.secrets
    if secrets is None:
        return (yield call)
    for param in call.tool.params:
        if isinstance(param.default, SecretInput):
            secrets.append(param.default)  # pyright: ignore[reportUnknownMemberType]
    previous = call_secrets.get()
    call_secrets.set(secrets)
    try:
        return (yield call)
    finally:
        call_secrets.set(previous)


def open_handles(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Give the function the content of its inputs; commit or discard its outputs.

    Stages never wait, so a wrapper of the function reads the inputs, not the stage itself.
    """
    handles = list(_iterate_handles(call.arguments))
    outputs = [handle for handle in handles if isinstance(handle, Output)]
    try:
        outcome = yield call.replace(tool=call.tool.replace(fn=_wrap_function(call.tool)))
        if not isinstance(outcome, Failed):
            for output in outputs:
                output.commit()
        return outcome
    finally:
        for output in outputs:
            output.discard()  # does nothing after a commit
        for handle in handles:
            if isinstance(handle, Input):
                handle.close()


def _iterate_handles(arguments: Mapping[str, Any]) -> Iterator[Any]:
    for value in arguments.values():
        for item in iter_items(value):
            if isinstance(item, (Input, Output)):
                yield item


def _wrap_function(tool: Tool) -> Callable[..., Any]:
    """Return a function that reads its inputs first."""
    fn = tool.fn
    code = getattr(fn, "__code__", None)
    flags = code.co_flags if code is not None else 0

    def load(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return {**arguments, **dict(_load_inputs(tool, arguments))}
        except Exception as error:
            mark_not_started(error)
            raise

    if flags & _ASYNC_STREAM:

        async def run_stream(**arguments: Any) -> Any:
            from asyncio import to_thread
            from contextlib import aclosing

            async with aclosing(fn(**await to_thread(load, arguments))) as items:
                async for item in items:
                    yield item

        return run_stream
    if flags & _COROUTINE:

        async def run_async(**arguments: Any) -> Any:
            from asyncio import to_thread

            return await fn(**await to_thread(load, arguments))

        return run_async

    def run_sync(**arguments: Any) -> Any:
        return fn(**load(arguments))

    return run_sync


def _load_inputs(tool: Tool, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the content of each input by name, and read the secrets."""
    from tooli.inputs.formats import read_content

    for param in tool.public_params:
        shape = unwrap_optional(param.shape)
        value = arguments.get(param.name)
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
