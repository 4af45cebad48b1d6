"""Parity: one request through every door of an app gives one and the same answer.

    Case ─┬▶ command line, read by tooli ─┐
          ├▶ command line, read by Typer ─┤
          ├▶ app.call, app.acall ─────────┼▶ Answer (envelope, exit code): all equal
          └▶ jsonl, app.stream, astream ──┘

`duration_ms` is the one thing that is left out of the comparison: it is a
measurement. Everything else must be equal, the order of keys included. What depends
on the caller is the same because the doors' callers are: every command line is
typed with the app's own name as its program, and nobody's marks are in the
environment.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from tooli.call import aio
from tooli.call.repair import compose
from tooli.contract.fit import Words
from tooli.contract.jsonable import is_list, is_object
from tooli.contract.record import Record
from tooli.errors import ToolError
from tooli.surfaces.cli.argv import SHAPING, WISHES, read_line
from tooli.testing.running import invoke, invoke_with, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import ClassVar

    from tooli.app import Tooli
    from tooli.call.result import TooliResult
    from tooli.testing.running import Invocation


class Case(Record):
    """One request, in the words of no door.

    `arguments` are Python values, in the order in which the tool declares them (so
    does a command line name them); `options` are the framework's: `{"yes": True}`.
    What only a command line can say (a surplus word, an option without its value)
    is written as `words`, and goes through the command line's doors alone. `skip`
    names a door, or a whole surface, whose answer is meant to differ, and says why.
    """

    tool: str
    arguments: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    words: Sequence[str] | None = None
    skip: Mapping[str, str] = {}


class Answer(Record):
    """What a door answered, in JSON's own types; `exit_code` where the door has one."""

    envelope: dict[str, Any]
    exit_code: int | None = None


class Door:
    """One way into an app. A subclass says how a Case goes in and an Answer comes out."""

    name: ClassVar[str]
    surface: ClassVar[str]
    takes_words: ClassVar[bool] = False
    streams: ClassVar[bool] = False  # gives items, and nothing about the call itself

    def __init__(self, app: Tooli) -> None:
        self.app = app

    def answer(self, case: Case) -> Answer:
        """What the door makes of a case."""
        raise NotImplementedError

    def declines(self, case: Case) -> str | None:
        """Why the door is not asked; None when it is."""
        if case.words is not None and not self.takes_words:
            return "it takes arguments, not words"
        return case.skip.get(self.name) or case.skip.get(self.surface)


_DOORS: list[type[Door]] = []

D = TypeVar("D", bound=type[Door])


def door(kind: D) -> D:
    """Register a door: from now on every parity test goes through it, too."""
    _DOORS.append(kind)
    return kind


def doors(app: Tooli) -> list[Door]:
    """Every door that the app has."""
    return [kind(app) for kind in _DOORS]


def assert_parity(app: Tooli, case: Case) -> dict[str, Any]:
    """Send a case through every door; the envelope that they agree on, without `duration_ms`.

    The tool runs once for each door, so it must not mind being repeated.
    """
    asked = [each for each in doors(app) if each.declines(case) is None]
    assert asked, f"no door takes {case}"
    answers = [(each, each.answer(case)) for each in asked]
    first, agreed = next((pair for pair in answers if not pair[0].streams), answers[0])
    wrong = [
        difference
        for each, answer in answers
        if (difference := _difference(first, agreed, each, answer))
    ]
    assert not wrong, f"the doors disagree about {case}\n" + "\n".join(wrong)
    return timeless(agreed.envelope)


def _difference(first: Door, agreed: Answer, other: Door, answer: Answer) -> str:
    expected = meant(first.app, timeless(agreed.envelope))
    found = meant(first.app, timeless(answer.envelope))
    if other.streams and not first.streams:
        expected = _as_items(expected)
    text = diff(pretty(expected), pretty(found), first.name, other.name)
    codes = agreed.exit_code, answer.exit_code
    if None not in codes and codes[0] != codes[1]:
        text += f"exit code: {codes[0]} ({first.name}), {codes[1]} ({other.name})\n"
    return text


def timeless(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope without what no two calls share: the time they took, the token of a plan."""
    found = dict(envelope)
    if "result" in found:
        found["result"] = _without_token(found["result"])
    if "meta" in found:
        found["meta"] = {k: v for k, v in found["meta"].items() if k != "duration_ms"}
    return found


def _without_token(result: Any) -> Any:
    """A plan without the token that it has for itself alone; alone or as the item of a stream."""
    if is_list(result) and len(result) == 1:
        return [_bare(result[0])]
    return _bare(result)


def _bare(plan: Any) -> Any:
    if is_object(plan) and {"tool", "basis", "token"} <= plan.keys():
        return {name: value for name, value in plan.items() if name != "token"}
    return plan


def _as_items(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope as a stream tells it: items, or the error; nothing about the call."""
    if not envelope["ok"]:
        return {"ok": False, "error": envelope["error"]}
    result = envelope.get("result", [])
    return {"ok": True, "result": result if isinstance(result, list) else [result]}


def pretty(value: Any) -> str:
    """A value as JSON that a person reads and a diff compares."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def diff(expected: str, found: str, one: str, other: str) -> str:
    """What differs, as a unified diff; empty when nothing does."""
    lines = difflib.unified_diff(
        expected.splitlines(keepends=True), found.splitlines(keepends=True), one, other, n=4
    )
    return "".join(lines)


# ------------------------------------------------------------------ the Python doors


@door
class CallDoor(Door):
    """`app.call`."""

    name, surface = "call", "python"

    def answer(self, case: Case) -> Answer:
        """What the call returned."""
        return _of_result(self.app.options(**case.options).call(case.tool, **case.arguments))


@door
class AsyncCallDoor(Door):
    """`await app.acall`."""

    name, surface = "acall", "python"

    def answer(self, case: Case) -> Answer:
        """What the call returned."""
        door = self.app.options(**case.options)
        return _of_result(aio.finish(door.acall(case.tool, **case.arguments)))


@door
class StreamDoor(Door):
    """`app.stream`."""

    name, surface, streams = "stream", "python", True

    def answer(self, case: Case) -> Answer:
        """The items that came, or the error that ended them."""
        items = self.app.options(**case.options).stream(case.tool, **case.arguments)
        return _of_items(items, self.app)


@door
class AsyncStreamDoor(Door):
    """`app.astream`."""

    name, surface, streams = "astream", "python", True

    def answer(self, case: Case) -> Answer:
        """The items that came, or the error that ended them."""
        door = self.app.options(**case.options)
        return _of_items(aio.iterate(door.astream(case.tool, **case.arguments)), self.app)


def _of_result(result: TooliResult[Any]) -> Answer:
    code = 0 if result.error is None else result.error.to_exception().exit_code
    return Answer(json.loads(result.model_dump_json()), code)


def _of_items(items: Iterable[Any], app: Tooli) -> Answer:
    """Python's own objects, as they would be written for somebody else."""
    from tooli.call.envelope import encode
    from tooli.call.model import Terms

    terms, came = Terms(app._house.policy), list[Any]()
    try:
        came += (json.loads(encode(item, [], terms)) for item in items)
    except ToolError as error:
        told = json.loads(encode(error.to_dict(), [], terms, "error"))
        return Answer({"ok": False, "error": told}, error.exit_code)
    return Answer({"ok": True, "result": came}, 0)


# ------------------------------------------------------------------ the command line's doors


@door
class CommandLineDoor(Door):
    """The command line, read by tooli's own reader where it can."""

    name, surface, takes_words = "cli", "cli", True

    def answer(self, case: Case) -> Answer:
        """The envelope on stdout."""
        done = invoke(self.app, *command_line(self.app, case), mode="json")
        return Answer(done.envelope, done.exit_code)


@door
class LinesDoor(Door):
    """The command line with `--jsonl`."""

    name, surface, takes_words, streams = "jsonl", "cli", True, True

    def answer(self, case: Case) -> Answer:
        """The lines on stdout; a failing stream's last line is its error."""
        return _of_lines(invoke(self.app, *command_line(self.app, case), mode="jsonl"))


@door
class TyperDoor(Door):
    """The same line, read by Typer."""

    name, surface, takes_words = "typer", "cli", True

    def answer(self, case: Case) -> Answer:
        """The envelope on stdout."""
        from typer.main import get_command

        words, program = command_line(self.app, case), name_of(self.app)
        command = get_command(self.app)
        done = invoke_with(
            lambda: command.main(words, prog_name=program), (program, *words), mode="json"
        )
        return Answer(done.envelope, done.exit_code)


def _of_lines(done: Invocation) -> Answer:
    lines = done.lines
    if not done.ok:
        return Answer({"ok": False, "error": lines[-1]["error"]}, done.exit_code)
    return Answer({"ok": True, "result": lines}, done.exit_code)


def command_line(app: Tooli, case: Case) -> list[str]:
    """The words that say a case on a command line, after the program's name."""
    tool = app.find(case.tool)
    if tool is None:
        return [*_flags(case.options, ()), *case.tool.split("."), *(case.words or ())]
    path = () if app.tree().single is not None else tool.path
    own = [flag for param in tool.params for flag in (*param.flags, *param.negations)]
    stray = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in case.arguments.items()
        if name not in tool.names
    ]
    words = compose(tool, case.arguments) if case.words is None else case.words
    return [*path, *_flags(case.options, own), *stray, *words]


def _flags(options: Mapping[str, Any], own: Sequence[str]) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        forms = name in ("detailed", "concise")
        flag = "--response-format" if forms else f"--{name.replace('_', '-')}"
        if flag in own:
            flag = f"--tooli-{flag[2:]}"
        if name in SHAPING or name in WISHES:
            flags.append(f"{flag}={value}")
            continue
        words = [flag, name] if forms else [flag]
        flags += words * int(value)
    return flags


def meant(app: Tooli, envelope: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope whose steps in `meta.next` say what they mean, not how they are typed:

    one door composes a line from arguments, another repeats the words that were typed.
    """
    envelope = _unasked(envelope)
    meta = dict(envelope.get("meta", {}))
    if "next" in meta:
        steps = [{**step, "argv": _meaning(app, step["argv"])} for step in meta["next"]]
        meta["next"] = steps
    if "truncated" in meta:  # a command line alone keeps the whole in a file, each time another
        meta["truncated"] = {k: v for k, v in meta["truncated"].items() if k != "full"}
    return {**envelope, "meta": meta} if meta else dict(envelope)


def _unasked(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """An envelope without the name of a request for approval: each caller has one of its own."""
    error: dict[str, Any] = envelope.get("error") or {}
    details: dict[str, Any] = error.get("details") or {}
    approval: Any = details.get("approval")
    if approval is None:
        return envelope
    text = json.dumps(envelope).replace(approval["id"], "ID")
    return json.loads(text.replace(approval["expires"], "THEN"))


def _meaning(app: Tooli, argv: Sequence[str]) -> dict[str, Any]:
    line = read_line(app.tree(), argv[1:], lambda param, words: words)
    arguments = {
        name: list(value.texts) if isinstance(value, Words) else value
        for name, value in sorted(line.arguments.items())
    }
    options = {name: str(said) for name, said in sorted(line.options.items()) if name != "output"}
    return {"path": list(line.path), "arguments": arguments, "options": options}
