"""Watched: runs a function under watch, and says what it does beyond its word."""

from __future__ import annotations

import os

from tooli.call.model import Runner
from tooli.call.pipeline import invoke, is_async, is_stream
from tooli.enforce.watching import Watch, Watching
from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
    from typing import Any

    from tooli.call.model import Call
    from tooli.enforce.watching import Violation

SEEN = "violations"
"""Under which name a call's `meta` carries what was seen, until its stage takes it out: rows of
three texts, a capability, what it was of, and a code."""
RECORDED = "recorded:"
"""Stands before a capability: nobody minds it, it is written down."""


class Watched(Runner):
    """Runs under watch whatever stands inside it; each step of a stream, too.

    A refusal sticks: a function that swallowed the error has failed all the same.
    """

    def __init__(self, watch: Watch, inner: Runner | None = None) -> None:
        super().__init__(inner)
        self.watch = watch
        self._told = 0  # violations that somebody was told of
        self._refused = False
        self._process = 0  # where it runs: forks of it tell nobody

    def run(self, call: Call) -> Any:
        """What the function gives, or an iterator of its items."""
        self.begin(call)
        try:
            value = self.hold(call, lambda: invoke(call.replace(runner=self.inner)))
        except BaseException:
            self.finish(call)
            raise
        return self._rest(call, value)

    async def arun(self, call: Call) -> Any:
        """The same on an event loop."""
        from tooli.call.aio import is_async_stream

        self.watch.shared = True
        self.begin(call)
        try:
            value = await self._ainvoke(call)
            if hasattr(value.__class__, "__await__"):
                value = await _Steps(self, call, value)
        except BaseException:
            self.finish(call)
            raise
        return _AsyncItems(self, call, value) if is_async_stream(value) else self._rest(call, value)

    def begin(self, call: Call) -> bool:
        """Set the watch, or say that there is none; then nothing runs that must be held."""
        self._process = os.getpid()
        self.watch.hear = lambda: self._hear(call)
        if self.watch.begin():
            return True
        said = "cannot be watched here: another audit hook of the process forbids it"
        if self.watch.must_hold:
            self.finish(call)
            raise AuthError(f"What {call.tool.name} touches {said}.")
        call.warnings.append(f"what it touches {said}")
        return False

    def finish(self, call: Call) -> None:
        """The call is over; what it left running stays under watch."""
        self.watch.finish()

    def _rest(self, call: Call, value: Any) -> Any:
        """The value, or its items that are still to come."""
        if is_stream(value):
            return _Items(self, call, value)
        self.finish(call)
        return value

    async def _ainvoke(self, call: Call) -> Any:
        """What the function gives at once: coroutines have not begun yet."""
        if self.inner is not None:
            return self.inner.arun(call.replace(runner=self.inner))
        from asyncio import to_thread

        fn = call.tool.fn
        if is_async(fn):
            return fn(**call.arguments)
        from tooli.call.aio import without_stop

        # The thread is the loop's: the watch begins inside it.
        return await to_thread(self.hold, call, lambda: without_stop(fn, call.arguments))

    # -------------------------------------------------------------- under watch

    def hold(self, call: Call, work: Callable[[], Any]) -> Any:
        """Do some work under watch; what it did beyond its word is told, or is an error."""
        watching = Watching(self.watch)
        try:
            try:
                watching.begin()
                value = work()
            finally:
                watching.end()
        except (StopIteration, StopAsyncIteration):  # the end of a step, not a failure
            self.conclude(call)
            raise
        except Exception as failure:
            self.conclude(call, failure)
            raise
        except SystemExit as end:
            self.conclude(call, end)
            raise
        self.conclude(call)
        return value

    def _hear(self, call: Call) -> None:
        """Tell at once what was seen: a call that is cut off says nothing afterwards."""
        watch = self.watch
        if len(watch.violations) > self._told and not watch.ended and os.getpid() == self._process:
            self.tell(call)

    def tell(self, call: Call) -> None:
        """Say what is new."""
        watch, told = self.watch, self._told
        self._told = len(watch.violations)
        carry(call, watch.violations)
        for violation in watch.violations[told : self._told]:
            if violation.code == "E2003" and not watch.blocks:
                call.warnings.append(
                    f"undeclared: {violation.capability} of {violation.target}; "
                    f"declare {declaration(violation)!r}"
                )

    def conclude(self, call: Call, failure: BaseException | None = None) -> None:
        """Raise where something was refused."""
        watch = self.watch
        if watch.denial is not None and not self._refused:
            self._refused = True  # once: a stream is closed behind its failure
            raise refusal(call, watch.denial) from failure


def carry(call: Call, found: list[Violation]) -> None:
    """Let a call's `meta` carry all that a watch has seen.

    It is set anew each time: that is what reaches whoever waits in another process. What is only
    recorded stands last: not all of it may be heard.
    """
    if call.meta is None or not found:
        return
    recorded = found[0].capability.startswith(RECORDED)
    seen = call.meta.get(SEEN, ())
    others = [row for row in seen if row[0].startswith(RECORDED) is not recorded]
    rows = [[one.capability, one.target, one.code] for one in found]
    call.meta[SEEN] = [*others, *rows] if recorded else [*rows, *others]


def refusal(call: Call, denial: Violation) -> AuthError:
    """The error for something that a command may not touch."""
    if denial.code == "E2005":
        return AuthError(
            f"{call.tool.name} may not touch {denial.target}: the configuration does not allow it.",
            code="E2005",
            suggestion=Suggestion(
                "ask_human", "Work on other files, or have allow_paths and deny_paths changed."
            ),
            details={"capability": denial.capability, "target": denial.target},
        )
    word = declaration(denial)
    return AuthError(
        f"{call.tool.name} does not declare {denial.capability} of {denial.target}, and tried it.",
        code="E2003",
        suggestion=Suggestion("ask_human", f"Its author declares capabilities=[…, {word!r}]."),
        details={
            "capability": denial.capability,
            "target": denial.target,
            "declaration": word,
        },
    )


def declaration(violation: Violation) -> str:
    """The capability that would have allowed it: a file's folder, as seen from here.

    All of the current folder would be too much for one file in it.
    """
    if violation.capability[:3] != "fs:":
        return violation.capability
    path = violation.target
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return f"{violation.capability}:{nearby(path if nearby(folder) == '.' else folder)}"


def nearby(path: str) -> str:
    """A path as an author would write it: from the current folder, or from home."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return path
    if path == here:
        return "."
    if here != os.sep and path.startswith(here + os.sep):
        return f".{path[len(here) :]}"
    return path


# ------------------------------------------------------------------ step by step


class _Items:
    """A stream, each step of it under watch."""

    def __init__(self, watched: Watched, call: Call, items: Iterator[Any]) -> None:
        self._watched, self._call, self._items = watched, call, items

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> Any:
        return self._watched.hold(self._call, self._items.__next__)

    def close(self) -> None:
        """Close the stream: what it does in the end is watched as well."""
        close = getattr(self._items, "close", None)
        try:
            if close is not None:
                self._watched.hold(self._call, close)
        finally:
            self._watched.finish(self._call)


class _Steps:
    """A coroutine, each step of it under watch; between steps the loop is everybody's."""

    def __init__(self, watched: Watched, call: Call, work: Awaitable[Any]) -> None:
        self._watched, self._call, self._work = watched, call, work

    def __await__(self) -> Generator[Any, Any, Any]:
        held, call = self._watched.hold, self._call
        steps: Any = self._work.__await__()
        step: Callable[[], Any] = lambda: next(steps)  # noqa: E731
        while True:
            try:
                waiting = held(call, step)
            except StopIteration as end:
                return end.value
            try:
                given = yield waiting
            except GeneratorExit:
                held(call, steps.close)
                raise
            except BaseException as failure:
                step = _throwing(steps, failure)
            else:
                step = _sending(steps, given)


def _throwing(steps: Any, failure: BaseException) -> Callable[[], Any]:
    return lambda: steps.throw(failure)


def _sending(steps: Any, given: Any) -> Callable[[], Any]:
    return (lambda: next(steps)) if given is None else (lambda: steps.send(given))


class _AsyncItems:
    """An async stream, each step of it under watch."""

    def __init__(self, watched: Watched, call: Call, items: AsyncIterator[Any]) -> None:
        self._watched, self._call, self._items = watched, call, items

    def __aiter__(self) -> _AsyncItems:
        return self

    async def __anext__(self) -> Any:
        return await _Steps(self._watched, self._call, self._items.__anext__())

    async def aclose(self) -> None:
        """Close the stream."""
        close = getattr(self._items, "aclose", None)
        try:
            if close is not None:
                await _Steps(self._watched, self._call, close())
        finally:
            self._watched.finish(self._call)
