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

from tooli.cli.argv import parse_command_line
from tooli.core._hot_tables import RESULT_OPTIONS, RUN_OPTIONS
from tooli.core.event_loop import iterate_async, run_awaitable
from tooli.core.record import Record
from tooli.errors import ToolError
from tooli.pipeline.input_errors import build_argv
from tooli.schema.convert import RawText
from tooli.testing.command_runner import app_name, invoke, invoke_callable
from tooli.text.jsonable import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import ClassVar

    from tooli.app import Tooli
    from tooli.pipeline.result import TooliResult
    from tooli.testing.command_runner import CommandResult


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
    argv: Sequence[str] | None = None
    skip: Mapping[str, str] = {}


class InterfaceResponse(Record):
    """What a door answered, in JSON's own types; `exit_code` where the door has one."""

    envelope: dict[str, Any]
    exit_code: int | None = None


class Interface:
    """One way into an app. A subclass says how a Case goes in and an Answer comes out."""

    name: ClassVar[str]
    surface: ClassVar[str]
    accepts_argv: ClassVar[bool] = False
    streams: ClassVar[bool] = False  # gives items, and nothing about the call itself

    def __init__(self, app: Tooli) -> None:
        self.app = app

    def send_case(self, case: Case) -> InterfaceResponse:
        """What the door makes of a case."""
        raise NotImplementedError

    def skip_reason(self, case: Case) -> str | None:
        """Why the door is not asked; None when it is."""
        if case.argv is not None and not self.accepts_argv:
            return "it takes arguments, not words"
        return case.skip.get(self.name) or case.skip.get(self.surface)


_INTERFACES: list[type[Interface]] = []

InterfaceType = TypeVar("InterfaceType", bound=type[Interface])


def register_interface(interface_class: InterfaceType) -> InterfaceType:
    """Register a door: from now on every parity test goes through it, too."""
    _INTERFACES.append(interface_class)
    return interface_class


def interfaces(app: Tooli) -> list[Interface]:
    """Every door that the app has."""
    return [kind(app) for kind in _INTERFACES]


def assert_parity(app: Tooli, case: Case) -> dict[str, Any]:
    """Send a case through every door; the envelope that they agree on, without `duration_ms`.

    The tool runs once for each door, so it must not mind being repeated.
    """
    selected = [interface for interface in interfaces(app) if interface.skip_reason(case) is None]
    assert selected, f"no door takes {case}"
    responses = [(interface, interface.send_case(case)) for interface in selected]
    first, reference = next((pair for pair in responses if not pair[0].streams), responses[0])
    differences = [
        difference
        for interface, response in responses
        if (difference := _difference(first, reference, interface, response))
    ]
    assert not differences, f"the doors disagree about {case}\n" + "\n".join(differences)
    return without_volatile_fields(reference.envelope)


def _difference(
    first: Interface, reference: InterfaceResponse, other: Interface, response: InterfaceResponse
) -> str:
    expected = normalize_next_steps(first.app, without_volatile_fields(reference.envelope))
    found = normalize_next_steps(first.app, without_volatile_fields(response.envelope))
    if other.streams and not first.streams:
        expected = _as_items(expected)
    text = diff(format_json(expected), format_json(found), first.name, other.name)
    codes = reference.exit_code, response.exit_code
    if None not in codes and codes[0] != codes[1]:
        text += f"exit code: {codes[0]} ({first.name}), {codes[1]} ({other.name})\n"
    return text


def without_volatile_fields(envelope: Mapping[str, Any]) -> dict[str, Any]:
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
        return [_drop_token(result[0])]
    return _drop_token(result)


def _drop_token(plan: Any) -> Any:
    if is_object(plan) and {"tool", "basis", "token"} <= plan.keys():
        return {name: value for name, value in plan.items() if name != "token"}
    return plan


def _as_items(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope as a stream tells it: items, or the error; nothing about the call."""
    if not envelope["ok"]:
        return {"ok": False, "error": envelope["error"]}
    result = envelope.get("result", [])
    return {"ok": True, "result": result if isinstance(result, list) else [result]}


def format_json(value: Any) -> str:
    """A value as JSON that a person reads and a diff compares."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def diff(expected: str, found: str, one: str, other: str) -> str:
    """What differs, as a unified diff; empty when nothing does."""
    lines = difflib.unified_diff(
        expected.splitlines(keepends=True), found.splitlines(keepends=True), one, other, n=4
    )
    return "".join(lines)


# ------------------------------------------------------------------ the Python doors


@register_interface
class CallInterface(Interface):
    """`app.call`."""

    name, surface = "call", "python"

    def send_case(self, case: Case) -> InterfaceResponse:
        """What the call returned."""
        return _response_from_result(
            self.app.options(**case.options).call(case.tool, **case.arguments)
        )


@register_interface
class AsyncCallInterface(Interface):
    """`await app.acall`."""

    name, surface = "acall", "python"

    def send_case(self, case: Case) -> InterfaceResponse:
        """What the call returned."""
        surface = self.app.options(**case.options)
        return _response_from_result(run_awaitable(surface.acall(case.tool, **case.arguments)))


@register_interface
class StreamInterface(Interface):
    """`app.stream`."""

    name, surface, streams = "stream", "python", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """The items that came, or the error that ended them."""
        items = self.app.options(**case.options).stream(case.tool, **case.arguments)
        return _response_from_items(items, self.app)


@register_interface
class AsyncStreamInterface(Interface):
    """`app.astream`."""

    name, surface, streams = "astream", "python", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """The items that came, or the error that ended them."""
        surface = self.app.options(**case.options)
        return _response_from_items(
            iterate_async(surface.astream(case.tool, **case.arguments)), self.app
        )


def _response_from_result(result: TooliResult[Any]) -> InterfaceResponse:
    code = 0 if result.error is None else result.error.to_exception().exit_code
    return InterfaceResponse(json.loads(result.model_dump_json()), code)


def _response_from_items(items: Iterable[Any], app: Tooli) -> InterfaceResponse:
    """Python's own objects, as they would be written for somebody else."""
    from tooli.core.call import RedactionPolicy
    from tooli.pipeline.present import encode_redacted

    redaction_policy, received = RedactionPolicy(app._state.policy), list[Any]()
    try:
        received += (json.loads(encode_redacted(item, [], redaction_policy)) for item in items)
    except ToolError as error:
        error_dict = json.loads(encode_redacted(error.to_dict(), [], redaction_policy, "error"))
        return InterfaceResponse({"ok": False, "error": error_dict}, error.exit_code)
    return InterfaceResponse({"ok": True, "result": received}, 0)


# ------------------------------------------------------------------ the command line's doors


@register_interface
class CommandLineInterface(Interface):
    """The command line, read by tooli's own reader where it can."""

    name, surface, accepts_argv = "cli", "cli", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """The envelope on stdout."""
        done = invoke(self.app, *command_line(self.app, case), mode="json")
        return InterfaceResponse(done.envelope, done.exit_code)


@register_interface
class JsonLinesInterface(Interface):
    """The command line with `--jsonl`."""

    name, surface, accepts_argv, streams = "jsonl", "cli", True, True

    def send_case(self, case: Case) -> InterfaceResponse:
        """The lines on stdout; a failing stream's last line is its error."""
        return _response_from_lines(invoke(self.app, *command_line(self.app, case), mode="jsonl"))


@register_interface
class TyperInterface(Interface):
    """The same line, read by Typer."""

    name, surface, accepts_argv = "typer", "cli", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """The envelope on stdout."""
        from typer.main import get_command

        argv, program = command_line(self.app, case), app_name(self.app)
        command = get_command(self.app)
        done = invoke_callable(
            lambda: command.main(argv, prog_name=program), (program, *argv), mode="json"
        )
        return InterfaceResponse(done.envelope, done.exit_code)


def _response_from_lines(command_result: CommandResult) -> InterfaceResponse:
    lines = command_result.lines
    if not command_result.ok:
        return InterfaceResponse(
            {"ok": False, "error": lines[-1]["error"]}, command_result.exit_code
        )
    return InterfaceResponse({"ok": True, "result": lines}, command_result.exit_code)


def command_line(app: Tooli, case: Case) -> list[str]:
    """The words that say a case on a command line, after the program's name."""
    tool = app.find(case.tool)
    if tool is None:
        return [*_flags(case.options, ()), *case.tool.split("."), *(case.argv or ())]
    path = () if app.tree().only_command is not None else tool.path
    own_flags = [flag for param in tool.params for flag in (*param.flags, *param.negations)]
    unknown_flags = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in case.arguments.items()
        if name not in tool.param_names
    ]
    argv = build_argv(tool, case.arguments) if case.argv is None else case.argv
    return [*path, *_flags(case.options, own_flags), *unknown_flags, *argv]


def _flags(options: Mapping[str, Any], own_flags: Sequence[str]) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        is_response_format = name in ("detailed", "concise")
        flag = "--response-format" if is_response_format else f"--{name.replace('_', '-')}"
        if flag in own_flags:
            flag = f"--tooli-{flag[2:]}"
        if name in RESULT_OPTIONS or name in RUN_OPTIONS:
            flags.append(f"{flag}={value}")
            continue
        tokens = [flag, name] if is_response_format else [flag]
        flags += tokens * int(value)
    return flags


def normalize_next_steps(app: Tooli, envelope: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope whose steps in `meta.next` say what they mean, not how they are typed:

    one door composes a line from arguments, another repeats the words that were typed.
    """
    envelope = _mask_approval(envelope)
    meta = dict(envelope.get("meta", {}))
    if "next" in meta:
        steps = [{**step, "argv": _parse_argv(app, step["argv"])} for step in meta["next"]]
        meta["next"] = steps
    if "truncated" in meta:  # a command line alone keeps the whole in a file, each time another
        meta["truncated"] = {k: v for k, v in meta["truncated"].items() if k != "full"}
    return {**envelope, "meta": meta} if meta else dict(envelope)


def _mask_approval(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """An envelope without the name of a request for approval: each caller has one of its own."""
    error: dict[str, Any] = envelope.get("error") or {}
    details: dict[str, Any] = error.get("details") or {}
    approval: Any = details.get("approval")
    if approval is None:
        return envelope
    text = json.dumps(envelope).replace(approval["id"], "ID")
    return json.loads(text.replace(approval["expires"], "THEN"))


def _parse_argv(app: Tooli, argv: Sequence[str]) -> dict[str, Any]:
    line = parse_command_line(app.tree(), argv[1:], lambda param, argv: argv)
    arguments = {
        name: list(value.texts) if isinstance(value, RawText) else value
        for name, value in sorted(line.arguments.items())
    }
    options = {
        name: str(option_value)
        for name, option_value in sorted(line.options.items())
        if name != "output"
    }
    return {"path": list(line.path), "arguments": arguments, "options": options}
