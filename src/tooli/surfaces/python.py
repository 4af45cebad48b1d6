"""The Python door: `app.call(…)` and its kin. The same checks as every door; never exits."""

from __future__ import annotations

from sys import modules
from time import perf_counter

from tooli.call.envelope import meta_of
from tooli.call.model import PLAIN_OPTIONS, PYTHON, Call, Caller, Failed, Ok, Options
from tooli.call.pipeline import ONLY_BIND, run, stream
from tooli.call.result import TooliResult, error_value
from tooli.call.wishes import SHAPING, WISHES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
    from typing import Any

    from tooli.call.model import Outcome, Problem, Stage

PLAIN = ("dry_run", "yes", "no_input", "quiet", "verbose", "detailed", "concise")
OPTIONS = frozenset((*PLAIN, *SHAPING, *WISHES))
"""What may be said to the framework by keyword, where the tool has no parameter of that name."""


class PythonDoor:
    """An app's tools as Python calls, with options set once for all of them."""

    __slots__ = ("_app", "_caller", "_house", "_options")

    def __init__(self, app: Any, options: Mapping[str, Any], caller: str | None = None) -> None:
        self._app = app
        self._house = app._house
        if not self._house.governed:
            from tooli.config.policy import tighten

            tighten(self._house)
        self._options = options
        self._caller = PYTHON if caller is None else Caller("python", caller, agent=True)

    def call(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """Run a tool; what became of it."""
        return self.run(tool_name, arguments)

    def run(self, name: str, arguments: dict[str, Any]) -> TooliResult[Any]:
        """The same, with the arguments in a dict."""
        started = perf_counter()
        call, stages = self._prepare(name, arguments)
        return _result(run(call, stages), call, started)

    async def acall(self, tool_name: str, /, **arguments: Any) -> TooliResult[Any]:
        """The same from async code: coroutines on this loop, other functions in a thread."""
        from tooli.call import aio

        started = perf_counter()
        call, stages = self._prepare(tool_name, arguments)
        return _result(await aio.run(call, stages), call, started)

    def stream(self, tool_name: str, /, **arguments: Any) -> Generator[Any, None, None]:
        """A tool's items as it makes them; raises the ToolError where it fails."""
        call, stages = self._prepare(tool_name, arguments)
        yield from _items((yield from stream(call, stages)))

    async def astream(self, tool_name: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """The same, in async code."""
        from tooli.call import aio

        call, stages = self._prepare(tool_name, arguments)
        ended: list[Outcome] = []
        async with aio.aclosing(aio.stream(call, stages, ended)) as items:
            async for item in items:
                yield item
        for item in _items(ended[0]):
            yield item

    def _prepare(self, name: str, arguments: dict[str, Any]) -> tuple[Call, tuple[Stage, ...]]:
        house = self._house
        ready = house.prepared.get(name)
        if ready is None:
            tool = self._app.find(name)
            if tool is None:
                return _unknown_tool(self._app, name, self._caller)
            ready = house.prepared[name] = (tool, self._app.stages_for(tool, PLAIN_OPTIONS))
        tool, stages = ready
        rehearsal = modules.get("tooli.call.rehearsal")
        dry = rehearsal is not None and rehearsal.is_rehearsing() and not tool.behavior.read_only
        if dry or self._options or not arguments.keys() <= tool.names:
            asked = dict(self._options)
            for key in OPTIONS.intersection(arguments) - tool.names:
                asked[key] = arguments.pop(key)
            if dry:  # what a rehearsed function calls is rehearsed, too
                asked["dry_run"] = True
            if asked:
                options, wrong = _read(asked)
                call = Call(tool, arguments, self._caller, [], options, house.policy, meta={})
                call = call.replace(problems=wrong, secrets=[])
                return call, self._app.stages_for(tool, options)
        call = Call(tool, arguments, self._caller, [], PLAIN_OPTIONS, house.policy)
        return call if stages is ONLY_BIND else call.replace(meta={}, secrets=[]), stages


def _read(asked: dict[str, Any]) -> tuple[Options, tuple[Problem, ...]]:
    """The options of a call, and what is wrong with them."""
    shaped = {name: asked.pop(name) for name in SHAPING if name in asked}
    problems: tuple[Problem, ...] = ()
    wished = {name: asked.pop(name) for name in WISHES if name in asked}
    if wished:
        from tooli.call.wishes import read_wishes

        wished, problems = read_wishes(wished)
    if shaped:
        from tooli.call.shaping import read_shaping

        asked["shaping"] = read_shaping(shaped)
    return Options(**asked, **wished), problems


def _result(outcome: Outcome, call: Call, started: float) -> TooliResult[Any]:
    value: Any = None
    error = None
    if type(outcome) is Ok:
        value = outcome.value
    else:
        assert isinstance(outcome, Failed)
        error = error_value(outcome.error, call, call.warnings)
    meta = meta_of(call, int((perf_counter() - started) * 1000))
    result: TooliResult[Any] = TooliResult(error is None, value, error, meta)
    if call.secrets or call.policy != "standard":
        result.on_terms(call)
    return result


def _items(outcome: Outcome) -> Iterator[Any]:
    """What is left to give after a stream: a list's items, any other value, or its error."""
    if isinstance(outcome, Failed):
        raise outcome.error
    value = outcome.value
    if type(value) in (list, tuple):
        yield from value
    elif type(value) in (set, frozenset):
        from tooli.contract.jsonable import ordered

        yield from ordered(value)
    elif value is not None:
        yield value


def _unknown_tool(app: Any, name: str, caller: Caller) -> tuple[Call, tuple[Stage, ...]]:
    """A call that is refused because no tool has that name."""
    from tooli.surfaces.serving import no_such_tool, without_tool

    def refuse(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        return Failed(no_such_tool(app, name))

    return without_tool(app, caller), (refuse,)


class Accessor:
    """`app.find_files`: the tool as a function that returns a TooliResult."""

    def __init__(self, app: Any, key: str) -> None:
        tool = app.find(key)
        self._app, self._key, self._tool = app, key, tool
        self.__doc__ = tool.fn.__doc__
        self.__wrapped__ = tool.fn
        self.__name__ = getattr(tool.fn, "__name__", key)

    def __call__(self, *args: Any, **arguments: Any) -> TooliResult[Any]:
        public = [param.name for param in self._tool.public]
        if len(args) > len(public):
            raise TypeError(f"{self._key}() takes {len(public)} arguments, {len(args)} given")
        for name, value in zip(public, args, strict=False):
            if name in arguments:
                raise TypeError(f"{self._key}() got {name!r} twice")
            arguments[name] = value
        return self._app.call(self._key, **arguments)


class GroupAccessor:
    """`app.users`: the tools of a group, as attributes."""

    def __init__(self, app: Any, path: tuple[str, ...], branch: Any) -> None:
        self._app, self._path, self._branch = app, path, branch

    def __getattr__(self, name: str) -> Any:
        found = accessor(self._app, self._path, self._branch, name)
        if found is None:
            raise AttributeError(f"{'.'.join(self._path)} has no command {name!r}")
        return found


def accessor(
    app: Any, path: tuple[str, ...], branch: Any, name: str
) -> Accessor | GroupAccessor | None:
    """What an attribute name means at a place in the tree: a tool, a group, or nothing."""
    for word in (name, name.replace("_", "-")):
        if word in branch.commands:
            return Accessor(app, ".".join((*path, word)))
        if word in branch.groups:
            return GroupAccessor(app, (*path, word), branch.groups[word])
    return None
