"""One call, on its way in through the stages and out again.

    stage ──▶ stage ──▶ bind ──▶ fn
      ◀──────── stage ◀────────── ┘

Stages do no waiting of their own, so the four drivers (`run`, `stream` and
their twins in `call.aio`) differ only in the lines that run the tool.
"""

from __future__ import annotations

from tooli.call.model import Call, Failed, Ok
from tooli.contract.fit import Given, Misfit, fit
from tooli.contract.tool import Handle, plain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from types import TracebackType
    from typing import Any, TypeGuard

    from tooli.call.model import Outcome, Problem, Stage
    from tooli.contract.tool import Param


class Walk:
    """Enter to pass every stage; set `outcome`; exit to pass them all again."""

    __slots__ = ("_entered", "_stages", "call", "outcome")

    def __init__(self, call: Call, stages: Sequence[Stage]) -> None:
        self.call = call
        self.outcome: Outcome | None = None
        self._stages = stages
        self._entered: list[Generator[Call, Outcome, Outcome]] = []

    def end(self) -> Outcome:
        """What became of the call, once.

        A failure holds the frames that it came through, this walk's driver among them: the walk
        does not hold the failure, or what the tool has opened would stay open.
        """
        outcome, self.outcome = self.outcome, None
        return outcome or _unanswered()

    def __enter__(self) -> Walk:
        try:
            for stage in self._stages:
                passing = stage(self.call)
                self.call = next(passing)
                self._entered.append(passing)
        except StopIteration as early:
            self.outcome = early.value or _unanswered()
        except (Exception, SystemExit) as exc:
            outcome = _failed(exc)
            refused = isinstance(outcome, Failed)
            self.outcome = outcome.replace(begun=False) if refused else outcome
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if exc is not None:
            self.outcome = _failed(exc)
        for passing in reversed(self._entered):
            try:
                passing.send(self.end())
            except StopIteration as out:
                self.outcome = out.value
            except Exception as broken:
                self.outcome = _failed(broken)
            else:
                from tooli.errors import InternalError

                self.outcome = Failed(InternalError(f"{passing!r} yielded twice"))
        return isinstance(exc, (Exception, SystemExit))


def _unanswered() -> Outcome:
    """The outcome where a stage gave none: never a licence to run the tool."""
    from tooli.errors import InternalError

    return Failed(InternalError("the tool was never run"))


def _failed(exc: BaseException) -> Outcome:
    from tooli.call.failure import outcome_of

    return outcome_of(exc)


# ------------------------------------------------------------------ binding


def bind(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Fit what was given, add defaults and what is injected, refuse what does not fit."""
    bound = fit_arguments(call)
    return (
        yield Call(
            call.tool,
            bound,
            call.caller,
            call.warnings,
            call.options,
            call.policy,
            call.approved,
            (),
            call.meta,
            call.peer,
            call.flow,
            call.runner,
            call.secrets,
        )
    )


def fit_arguments(call: Call) -> dict[str, Any]:
    """The arguments as the function takes them; raises an InputError with all that is wrong."""
    given = call.arguments
    bound: dict[str, Any] = {}
    wrong: list[Problem] | None = None
    used = 0
    for param in call.tool.params:
        name = param.name
        if name in given:
            used += 1
            value = given[name]
            if type(value) is param.exact:
                bound[name] = value
                continue
            if param.kind == "injected" and type(value) is not Given:
                used -= 1
                continue
            try:
                bound[name] = fit(param, value)
            except Misfit as misfit:
                wrong = _note(wrong, param, misfit)
        elif param.settled:
            bound[name] = param.default
        elif param.kind == "injected":
            bound[name] = _inject(param, call)
        elif param.required:
            found = _piped(param, call) if call.tool.handles else None
            if found is None:
                wrong = _note(wrong, param, None)
            else:
                bound[name] = found
        else:
            from tooli.contract.values import fit_default

            try:
                bound[name] = fit_default(param)
            except Misfit as misfit:
                wrong = _note(wrong, param, misfit)
    if call.tool.handles or call.caller.agent:
        from tooli.call.hardening import look_closer

        wrong = look_closer(call, bound, wrong)
    if wrong is not None or call.problems or used != len(given):
        from tooli.call.repair import refusal

        raise refusal(call, wrong or [])
    return bound if call.tool.model is None else _as_model(call, bound)


def _as_model(call: Call, bound: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the one model that the function takes, with what is injected beside it."""
    from tooli.call.repair import refusal, whole_problems
    from tooli.contract.models import validate

    assert call.tool.model is not None
    name, model = call.tool.model
    fields = {param.name: bound.pop(param.name) for param in call.tool.public}
    try:
        return {name: validate(model, fields), **bound}
    except Misfit as misfit:
        raise refusal(call, list(whole_problems(misfit))) from None


def _piped(param: Param, call: Call) -> Any:
    """What a pipe holds, for an argument that takes input and was not given."""
    shape = plain(param.shape)
    if param.kind != "argument" or not isinstance(shape, Handle) or call.options.stdin_taken:
        return None
    return shape.absent(call.caller.surface) or None


ONLY_BIND = (bind,)
"""The stages of an ordinary tool: the pipeline takes a shorter way through them."""


def _note(wrong: list[Problem] | None, param: Param, misfit: Misfit | None) -> list[Problem]:
    from tooli.call.repair import problems_of

    return [*(wrong or ()), *problems_of(param, misfit)]


def _inject(param: Param, call: Call) -> Any:
    from tooli.call.context import Context, typer_context

    return Context(call) if param.shape.what == "context" else typer_context(call)  # type: ignore[union-attr]


# ------------------------------------------------------------------ the drivers


def run(call: Call, stages: Sequence[Stage]) -> Outcome:
    """The outcome of a call. A tool's failure is returned, never raised."""
    if stages is ONLY_BIND:
        return _run_plainly(call)
    with Walk(call, stages) as walk:
        if walk.outcome is None:
            value, flow = invoke(walk.call), walk.call.flow
            if is_stream(value):
                value = gather(value if flow is None else flow.sift(value))
            walk.outcome = Ok(value)
    return walk.end()


def _run_plainly(call: Call) -> Outcome:
    """The same walk, where binding is all there is to pass: without stages to enter and leave."""
    try:
        value = _called(call.tool.fn(**fit_arguments(call)))
        return Ok(gather(value) if is_stream(value) else value)
    except (Exception, SystemExit) as exc:
        return _failed(exc)


def stream(call: Call, stages: Sequence[Stage]) -> Generator[Any, None, Outcome]:
    """Yield what the tool yields, as it does; return the outcome.

    A tool that does not stream yields nothing: its value is in the outcome.
    """
    with Walk(call, stages) as walk:
        flow = walk.call.flow
        if flow is not None:
            flow.lines = True
        if walk.outcome is None:
            value = invoke(walk.call)
            if is_stream(value):
                yield from counted(value if flow is None else flow.sift(value))
                value = None
            walk.outcome = Ok(value)
    return walk.end()


def invoke(call: Call) -> Any:
    """Run the function; async ones to their end, or as a stream of their items."""
    if call.runner is not None:
        return call.runner.run(call)
    return _called(call.tool.fn(**call.arguments))


def _called(value: object) -> Any:
    """What a function gave, awaited where it has to be."""
    kind = type(value)
    if kind in _SETTLED:
        return value
    if hasattr(kind, "__await__"):
        from tooli.call.aio import finish

        return finish(value)  # pyright: ignore[reportArgumentType]
    if hasattr(kind, "__anext__"):
        from tooli.call.aio import iterate

        return iterate(value)  # pyright: ignore[reportArgumentType]
    return value


_SETTLED = frozenset((str, int, float, bool, list, dict, tuple, type(None)))


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether a function runs on an event loop itself: as a coroutine, or a stream of them."""
    code = getattr(fn, "__code__", None)
    return code is not None and bool(code.co_flags & (0x80 | 0x200))


def is_stream(value: object) -> TypeGuard[Iterator[Any]]:
    """Whether a tool gave its result piece by piece: it made an iterator, not an open file."""
    kind = type(value)
    return kind not in _SETTLED and hasattr(kind, "__next__") and not hasattr(kind, "fileno")


def gather(items: Iterator[Any]) -> list[Any]:
    """All items of a stream."""
    return list(counted(items))


def counted(items: Iterator[Any]) -> Iterator[Any]:
    """The same items; a failure on the way says how many there were."""
    count = 0
    try:
        for item in items:
            yield item
            count += 1
    except Exception as exc:
        from tooli.call.failure import after_items

        raise after_items(exc, count) from exc
    finally:  # a reader that leaves early leaves nothing open
        close = getattr(items, "close", None)
        if close is not None:
            close()
