"""Pass a call through its stages to the function, and the outcome back through them.

    stage ──▶ stage ──▶ bind ──▶ fn
      ◀──────── stage ◀────────── ┘

Stages are plain generators and never await. So the four drivers (`run` and `stream` here and in
`async_drivers`) differ only in the lines that run the function.

`Walk`, `bind` and the drivers share one file because an ordinary call needs all of them, and each
additional file adds 0.1 ms to the start. A call whose only stage is `bind` takes the fast path.
"""

from __future__ import annotations

from tooli.core import find_loaded
from tooli.core.call import Call, Failed, Ok, Work
from tooli.pipeline import stage_name
from tooli.schema import ConversionError, Converted, RawText, convert_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Generator, Iterator, Sequence
    from typing import Any, TypeGuard

    from tooli.core.call import Outcome, Stage, StageRun
    from tooli.core.result_types import Partial
    from tooli.core.tool import Param


class Walk:
    """A context manager that passes one call through its stages.

    Entering it passes the call to each stage. The driver then sets `outcome`, unless a stage has
    set it. Exiting it passes the outcome back through the stages.
    """

    __slots__ = ("_entered", "_stages", "call", "outcome")

    def __init__(self, call: Call, stages: Sequence[Stage]) -> None:
        self.call = call
        self.outcome: Outcome | None = None
        self._stages = stages
        self._entered: list[StageRun] = []

    def take_outcome(self) -> Outcome:
        """Return the outcome and remove it from the walk.

        The traceback of an error refers to this walk. If the walk kept the error, the reference
        cycle would keep the files open that the function has opened.
        """
        outcome, self.outcome = self.outcome, None
        return outcome or _stage_error(None)

    def __enter__(self) -> Walk:
        steps = self.enter_stages()
        try:
            work = next(steps)
            while True:
                work = steps.send(work.run())
        except StopIteration:
            return self

    def enter_stages(self) -> Generator[Work, Outcome, None]:
        """Pass the call to each stage. Yields the work of stages that the driver has to run."""
        try:
            for stage in self._stages:
                generator = stage(self.call)
                step = next(generator)
                while isinstance(step, Work):
                    step = generator.send((yield step))
                self.call = step
                self._entered.append(generator)
        except StopIteration as early:
            self.outcome = early.value or _stage_error(self._stages[len(self._entered)])
        except (Exception, SystemExit) as exc:
            outcome = _failed_outcome(exc, self.call, self._stages[len(self._entered)])
            has_failed = isinstance(outcome, Failed)
            self.outcome = outcome.replace(has_started=False) if has_failed else outcome

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> bool:
        if exc is not None:
            self.outcome = _failed_outcome(exc, self.call)
        for i in range(len(self._entered) - 1, -1, -1):
            try:
                self._entered[i].send(self.take_outcome())
            except StopIteration as stopped:
                self.outcome = stopped.value or _stage_error(self._stages[i])
            except Exception as stage_error:
                self.outcome = _failed_outcome(stage_error, self.call, self._stages[i])
            else:
                self.outcome = _stage_error(self._stages[i], "yielded twice")
        return isinstance(exc, (Exception, SystemExit))


def _stage_error(stage: Stage | None, problem: str = "returned no outcome") -> Outcome:
    """Return the failure for an invalid stage, or for a tool that never ran."""
    from tooli.errors import InternalError

    if stage is None:
        return Failed(InternalError("the tool was never run"))
    return Failed(InternalError(f"the stage {stage_name(stage)!r} {problem}"))


def _failed_outcome(exc: BaseException, call: Call, stage: Stage | None = None) -> Outcome:
    """Return the outcome for an exception. If it is unexpected, the error names the stage."""
    from tooli.pipeline.failure import to_outcome

    return to_outcome(exc, None if stage is None or stage is bind else stage_name(stage), call)


# ------------------------------------------------------------------ binding


def bind(call: Call) -> StageRun:
    """Convert and validate the arguments, and add defaults and injected values."""
    return (yield call.replace(arguments=bind_arguments(call), problems=()))


def bind_arguments(call: Call) -> dict[str, Any]:
    """Return the arguments for the function; raise an InputError that lists every problem."""
    tool, arguments = call.tool, call.arguments
    bound: dict[str, Any] = {}
    errors: list[tuple[Param, ConversionError | None]] = []
    used_count = 0
    for param in tool.params:
        name = param.name
        if name in arguments:
            used_count += 1
            value = arguments[name]
            if type(value) is param.exact_type and (type(value) is not str or value[:1] != "<"):
                bound[name] = value
                continue
            if param.kind == "injected" and type(value) is not Converted:
                used_count -= 1
                continue
            try:
                if type(value) is RawText and value.fallback is not None:
                    bound[name] = convert_text(param, value, call.warnings)
                else:
                    from tooli.schema.convert_values import convert_argument

                    bound[name] = convert_argument(param, value, call.warnings)
                continue
            except ConversionError as error:
                if value is not None or param.required:
                    errors.append((param, error))
                    continue
                # null is not a valid value: it means that the argument is not given
        if param.has_valid_default:
            bound[name] = param.default
        elif param.kind == "injected":
            from tooli.pipeline.context import make_injected

            bound[name] = make_injected(param, call)
        elif param.required:
            errors.append((param, None))
        elif not param.is_omittable:
            from tooli.schema.convert_values import convert_default

            try:
                bound[name] = convert_default(param)
            except ConversionError as error:
                errors.append((param, error))
    has_unknown = used_count != len(arguments)
    needs_checks = tool.has_handles or call.caller.maybe_agent or tool.input_model is not None
    needs_checks = needs_checks or tool.argument_check is not None
    if not (errors or call.problems or has_unknown or needs_checks):
        return bound
    from tooli.pipeline.input_errors import finish_binding

    return finish_binding(call, bound, errors, has_unknown)


ONLY_BIND = (bind,)
"""The stages of an ordinary call. `run` takes the fast path if it gets this tuple object."""


# ------------------------------------------------------------------ the drivers


def run(call: Call, stages: Sequence[Stage]) -> Outcome:
    """Run a call and return its outcome. A failure is returned, never raised."""
    if stages is ONLY_BIND:
        return _run_fast_path(call)
    with Walk(call, stages) as walk:
        if walk.outcome is None:
            value, flow = invoke(walk.call), walk.call.flow
            if is_stream(value):
                value = collect_items(value if flow is None else flow.process(value))
            walk.outcome = value_outcome(value, walk.call)
    return walk.take_outcome()


def _run_fast_path(call: Call) -> Outcome:
    """Run a call whose only stage is `bind`, without a Walk."""
    try:
        arguments = bind_arguments(call)
        value = _resolve_value(call.tool.fn(**arguments))
        if type(value) in _PLAIN_TYPES:
            return Ok(value)
        if is_partial(value):
            return value_outcome(value, call.replace(arguments=arguments))
        return Ok(collect_items(value) if is_stream(value) else value)
    except (Exception, SystemExit) as exc:
        return _failed_outcome(exc, call)


def stream(call: Call, stages: Sequence[Stage]) -> Generator[Any, None, Outcome]:
    """Run a call, yield the items of its stream as they come, and return the outcome.

    A function that does not stream yields nothing: its value is in the outcome. So is that of an
    expression about the whole result.
    """
    if call.options.python_eval is not None:
        return run(call, stages)
    with Walk(call.replace(is_streamed=True), stages) as walk:
        flow = walk.call.flow
        if walk.outcome is None:
            value = invoke(walk.call)
            if is_stream(value):
                yield from count_items(value if flow is None else flow.process(value))
                value = None
            walk.outcome = value_outcome(value, walk.call)
    return walk.take_outcome()


def value_outcome(value: object, call: Call) -> Outcome:
    """Return the outcome of a call whose function returned a value."""
    if type(value) in _PLAIN_TYPES or not is_partial(value):
        return Ok(value)
    from tooli.pipeline.partial_results import partial_outcome

    return partial_outcome(value, call)


def invoke(call: Call) -> object:
    """Run the function of a call; return its value, or an iterator of its items."""
    if call.runner is not None:
        return call.runner.run(call)
    return _resolve_value(call.tool.fn(**call.arguments))


def _resolve_value(value: object) -> object:
    """Return the result of a function. Await a coroutine; make an async stream a sync one."""
    if type(value) in _PLAIN_TYPES:
        return value
    if is_awaitable(value):
        from tooli.core.event_loop import run_awaitable

        value = run_awaitable(value)
    if is_async_stream(value):
        from tooli.core.event_loop import iterate_async

        return iterate_async(value)
    return read_failures(value) if is_partial(value) else value


_PLAIN_TYPES = frozenset((str, int, float, bool, list, dict, tuple, type(None)))


CO_COROUTINE, CO_ASYNC_GENERATOR = 0x80, 0x200
"""Flags of the code object of an async function; `inspect` would take too long to import."""


def code_flags(fn: object) -> int:
    """Return the flags of a function's code object; 0 for other callables."""
    code = getattr(fn, "__code__", None)
    return 0 if code is None else code.co_flags


def is_async(fn: object) -> bool:
    """True for a coroutine function or an async generator function."""
    return bool(code_flags(fn) & (CO_COROUTINE | CO_ASYNC_GENERATOR))


def is_awaitable(value: object) -> TypeGuard[Awaitable[object]]:
    """True if the class of a value has `__await__`."""
    return hasattr(type(value), "__await__")


def is_async_stream(value: object) -> TypeGuard[AsyncIterator[object]]:
    """True if the result of a function is an async stream."""
    return hasattr(type(value), "__anext__")


def is_stream(value: object) -> TypeGuard[Iterator[object]]:
    """True if the result of a function is a stream: an iterator, but not an open file."""
    kind = type(value)
    return kind not in _PLAIN_TYPES and hasattr(kind, "__next__") and not hasattr(kind, "fileno")


def is_partial(value: object) -> TypeGuard[Partial[Any]]:
    """True if the result of a function is a `Partial`."""
    return type(value) is find_loaded("tooli.core.result_types", "Partial")


def read_failures(value: Partial[Any]) -> Partial[Any]:
    """Return a `Partial` whose failures are errors. Few calls load the module for it."""
    from tooli.pipeline import partial_results

    return partial_results.read_failures(value)


def collect_items(items: Iterator[object]) -> list[object]:
    """Return all items of a stream. If it fails, the exception has those before the failure."""
    collected: list[object] = []
    try:
        collected.extend(count_items(items))
    except BaseException as exc:
        if collected:
            vars(exc)["collected_items"] = collected
        raise
    return collected


def count_items(items: Iterator[object]) -> Iterator[object]:
    """Yield the items of a stream and close it. If it fails, the error has the number of items."""
    count = 0
    try:
        for item in items:
            yield item
            count += 1
    except Exception as exc:
        from tooli.pipeline.failure import with_item_count

        raise with_item_count(exc, count) from exc
    finally:  # also if the reader stops early
        close_stream(items)


def close_stream(items: object) -> None:
    """Close a stream, if it can be closed."""
    close = getattr(items, "close", None)
    if close is not None:
        close()


async def aclose_stream(items: object) -> None:
    """Close an async stream, if it has `aclose`, as async generators do."""
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()
