"""Serving: what the doors with many callers (MCP, HTTP) share. Names, calls, answers.

arguments ─▶ Desk.open ─▶ Served ─▶ run │ arun ─▶ Answer ─▶ the envelope, in bytes
"""

from __future__ import annotations

import sys
from time import perf_counter

from tooli.call.envelope import document
from tooli.call.model import PLAIN_OPTIONS, Failed, Options
from tooli.call.pipeline import run
from tooli.call.wishes import SHAPING, WISHES
from tooli.contract.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.call.model import Call, Caller, Outcome, Problem, Stage
    from tooli.call.peer import Peer
    from tooli.call.shaping import Shaping
    from tooli.contract.tool import Tool
    from tooli.errors import InputError, ToolError

WORDS = {
    **dict.fromkeys(("yes", "dry_run", "detailed", "concise", "quiet"), bool),
    "verbose": int,
}
"""The framework's options that a call may name, and what they are."""


class Desk:
    """An app's tools, by the names that protocols take; current, whatever is registered later."""

    def __init__(self, app: Any) -> None:
        from tooli.config.policy import tighten

        tighten(app._house)
        rules = app._house.rules
        if "faults" in rules:
            from tooli.config.layers import faulty

            raise faulty(rules["faults"])
        if "rate_limit" in rules:
            check_rate(rules["rate_limit"])
        self.app = app
        self._loops: Stage | None = None  # what looks after failures that repeat
        self._edition = -1
        self._tools: dict[str, Tool] = {}

    def verifier(self) -> Any:
        """What verifies callers' tokens, where anything is set for it."""
        rules = self.app._house.rules
        if not rules:
            return None
        from tooli.config.identity import verifier_for

        return verifier_for(rules)

    def _watch_loops(self) -> Stage:
        from tooli.stages.loops import break_loops_in
        from tooli.state.loops import Memory

        self._loops = break_loops_in(Memory(), self.app._house)
        return self._loops

    @property
    def name(self) -> str:
        """The app's name."""
        return self.app._house.name

    @property
    def version(self) -> str:
        """The app's version; an app that tells none has an empty one."""
        return self.app._house.version or ""

    @property
    def edition(self) -> int:
        """A number that changes whenever the app's tools do."""
        return self.app._house.edition

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool that is not hidden, by its name in `[a-z0-9_]`, in the app's order."""
        if self._edition != self.edition:
            edition = self.edition
            from tooli.views.schema import named

            self._tools = named(self.app.catalog)
            self._edition = edition
        return self._tools

    def open(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        caller: Caller,
        *,
        options: Options = PLAIN_OPTIONS,
        problems: tuple[Problem, ...] = (),
        approved: bool = False,
        peer: Peer | None = None,
    ) -> Served:
        """A call that is ready to run."""
        started = perf_counter()
        call, stages = self.app.prepare(
            tool,
            arguments,
            caller,
            options,
            [],
            problems=problems,
            approved=approved,
            peer=peer,
        )
        stages = self._watched(tool, stages, caller, approved)
        return Served(call, stages, started)

    def _watched(
        self, tool: Tool, stages: tuple[Stage, ...], caller: Caller, approved: bool
    ) -> tuple[Stage, ...]:
        """The stages, with what doors with many callers need outside of them."""
        named = caller.session is not None or caller.principal is not None
        if named or caller.address is None:  # or it is the one client of a process
            stages = (self._loops or self._watch_loops(), *stages)
        own, said = tool.limits.rate, self.app._house.rules.get("rate_limit")
        if approved or (own is None and said is None):  # sent again, approved: it was counted
            return stages
        from tooli.stages.rates import limit_rate

        rates = [rate for rate in dict.fromkeys((own, said)) if rate is not None]
        return (limit_rate(rates), *stages)


def check_rate(said: Any) -> None:
    """Refuse to serve with a rate that nobody can hold callers to."""
    from tooli.contract.limits import RATE, is_rate
    from tooli.errors import InputError, Suggestion

    if not is_rate(said):
        where = "Correct it in the configuration file or in TOOLI_RATE_LIMIT, or leave it out."
        fix = Suggestion("fix", where)
        text = f"The setting rate_limit is {str(said)[:60]!r}: it must say {RATE}."
        raise InputError(text, code="E1011", field="rate_limit", suggestion=fix, is_retryable=False)


def is_installed(package: str) -> bool:
    """Whether a package is there; found, not loaded, and without the price of `importlib.util`."""
    if package in sys.modules:
        return sys.modules[package] is not None  # pyright: ignore[reportUnnecessaryComparison]
    try:
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            if find is not None and find(package, None) is not None:
                return True
    except ImportError:  # somebody wants it not to be there
        return False
    return False


def no_such_tool(app: Any, name: str) -> InputError:
    """The error for a name that no tool has, with the one that was probably meant."""
    from tooli.call.repair import no_command_given, no_such_command

    branch, path = app.tree(), [app._house.name]
    words = name.replace(".", " ").replace("/", " ").split() or [name]
    while words and words[0] in branch.groups:
        path.append(words[0])
        branch = branch.groups[words.pop(0)]
    return no_such_command(branch, words[0], path) if words else no_command_given(branch)


def path_within(scope: Mapping[str, Any]) -> str:
    """The path of an HTTP request, without what stands before the application."""
    path: str = scope["path"]
    root: str | None = scope.get("root_path")
    if root:
        root = root.rstrip("/")
        if root and (path == root or path.startswith(root + "/")):
            return path[len(root) :] or "/"
    return path


GRACE = 10.0
"""Seconds that calls over HTTP get to finish in, once the server is asked to end."""

MOST_CALLS = 256
"""How many calls a door takes at a time, where nothing else is said; more are sent away."""


def too_busy() -> ToolError:
    """The error for a call that comes while there are as many as a door takes."""
    from tooli.errors import Suggestion, TemporaryError

    return TemporaryError(
        "The server has as many calls as it takes at a time.",
        suggestion=Suggestion("retry_later", "Wait a second, then call again."),
        details={"retry_after": 1},
    )


def without_tool(app: Any, caller: Caller) -> Call:
    """A call to nothing: what the answer to a request that names no tool is about."""
    from tooli.call.model import Call
    from tooli.contract.tool import Tool

    house = app._house

    def nothing() -> None: ...

    nobody = Tool(house.name, (), house.name, (), nothing, (), frozenset(), version=house.version)
    return Call(nobody, {}, caller, [], policy=house.policy)


def take_options(
    tool: Tool, given: Mapping[str, Any], said: Any = None
) -> tuple[dict[str, Any], Options, tuple[Problem, ...]]:
    """Arguments, the framework's options, and what is wrong with these.

    Options are said apart, or among the arguments; there they count where the tool has no
    parameter of that name, as `app.call` has it.
    """
    arguments = dict(given)
    asked: dict[str, Any] = {}
    for word, kind in WORDS.items():
        if word in arguments and word not in tool.names and type(arguments[word]) is kind:
            asked[word] = arguments.pop(word)
        if is_object(said) and type(said.get(word)) is kind:
            asked[word] = said[word]
    asked.setdefault("detailed", False)
    shaped = _take_shaping(tool, arguments, said)
    if shaped is not None:
        asked["shaping"] = shaped
    wished = {name: said[name] for name in WISHES if is_object(said) and name in said}
    for name in WISHES:
        if name in arguments and name not in tool.names:
            wished.setdefault(name, arguments.pop(name))
    if not wished:
        return arguments, Options(**asked), ()
    from tooli.call.wishes import read_wishes

    wished, problems = read_wishes(wished)
    return arguments, Options(**asked, **wished), problems


def _take_shaping(tool: Tool, arguments: dict[str, Any], said: Any) -> Shaping | None:
    shaped: dict[str, Any] = {}
    for word, kinds in SHAPING.items():
        if word in arguments and word not in tool.names and type(arguments[word]) in kinds:
            shaped[word] = arguments.pop(word)
        if is_object(said) and word in said:
            shaped[word] = said[word]
    if not shaped:
        return None
    from tooli.call.shaping import read_shaping

    return read_shaping(shaped)


class Served:
    """A call on its way, in a process that serves many."""

    __slots__ = ("call", "stages", "started")

    def __init__(self, call: Call, stages: tuple[Stage, ...], started: float) -> None:
        self.call = call
        self.stages = stages
        self.started = started

    def run(self) -> Answer:
        """The answer, made in this thread."""
        if not self.call.tool.prints:
            return self.answer(self._outcome())
        from tooli.call.printing import Printed

        with Printed() as printed:
            outcome = self._outcome()
        return self.answer(outcome, printed.text())

    def _outcome(self) -> Outcome:
        try:
            return run(self.call, self.stages)
        except KeyboardInterrupt as stop:  # the tool's own: the server's comes to its main thread
            return _stopped(stop)

    async def arun(self) -> Answer:
        """The answer, made on this event loop: async functions here, others in a thread."""
        if not self.call.tool.prints:
            return self.answer(await self._aoutcome())
        from tooli.call.printing import Printed

        with Printed() as printed:
            outcome = await self._aoutcome()
        return self.answer(outcome, printed.text())

    async def _aoutcome(self) -> Outcome:
        from tooli.call import aio

        try:
            return await aio.run(self.call, self.stages)
        except KeyboardInterrupt as stop:  # must not reach the loop, which would end
            return _stopped(stop)

    def answer(self, outcome: Outcome, printed: str = "") -> Answer:
        """An outcome, with what the command printed."""
        if printed:
            from tooli.surfaces.printed import with_printed

            outcome = with_printed(outcome, printed, self.call)
        return Answer(outcome, self.call, self.started)


def _stopped(stop: BaseException) -> Outcome:
    from tooli.call.failure import outcome_of

    return outcome_of(stop)


class Answer:
    """What became of a call, ready to be written."""

    __slots__ = ("call", "outcome", "started")

    def __init__(self, outcome: Outcome, call: Call, started: float) -> None:
        self.outcome = outcome
        self.call = call
        self.started = started

    @property
    def error(self) -> ToolError | None:
        """The error, if it failed."""
        return self.outcome.error if isinstance(self.outcome, Failed) else None

    def milliseconds(self) -> int:
        """How long it took."""
        return int((perf_counter() - self.started) * 1000)

    def document(self) -> bytes:
        """The envelope."""
        return document(self.outcome, self.call, self.milliseconds)
