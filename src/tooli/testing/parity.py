"""Check that one request gives the same answer through every interface of an app.

    Case ─┬▶ command line, parsed by tooli ─┐
          ├▶ command line, parsed by Typer ─┤
          ├▶ app.call, app.acall ───────────┼▶ InterfaceResponse: all equal
          └▶ jsonl, app.stream, astream ────┘

The comparison ignores `duration_ms`, which is a measurement. Everything else must be equal, and the
keys must have the same order. The caller has no influence on the answers: the program always has
the name of the app, and the environment has no variables of an agent.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from tooli.cli.argv import parse_command_line
from tooli.core._hot_tables import RESULT_OPTIONS, RUN_OPTIONS
from tooli.core.call import RedactionPolicy
from tooli.core.event_loop import iterate_async, run_awaitable
from tooli.core.record import Record
from tooli.errors import ToolError
from tooli.pipeline.input_errors import build_argv
from tooli.pipeline.present import ItemPresenter
from tooli.schema.convert import RawText
from tooli.testing.command_runner import app_name, invoke, invoke_callable
from tooli.text.jsonable import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import ClassVar

    from tooli.app import Tooli
    from tooli.core.protocols import JsonObject
    from tooli.pipeline.prepared_call import TooliResult
    from tooli.testing.command_runner import CommandResult


class Case(Record):
    """One request, independent of an interface.

    Args:
        tool: The command.
        arguments: Python values, in the order of the parameters.
        options: Options of the framework, such as `{"yes": True}`.
        argv: Command line arguments that other interfaces cannot express, such as an option
            without its value. The case then runs on the command line only.
        skip: Names of interfaces, or of whole surfaces, with the reason why they differ.
    """

    tool: str
    arguments: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    argv: Sequence[str] | None = None
    skip: Mapping[str, str] = {}


class InterfaceResponse(Record):
    """The answer of an interface as JSON types, and the exit code if the interface has one."""

    envelope: JsonObject
    exit_code: int | None = None


class Interface:
    """Base class of an interface: a way to call an app with a Case."""

    name: ClassVar[str]
    surface: ClassVar[str]
    accepts_argv: ClassVar[bool] = False
    streams: ClassVar[bool] = False  # returns items, and no metadata

    def __init__(self, app: Tooli) -> None:
        self.app = app

    def send_case(self, case: Case) -> InterfaceResponse:
        """Send a case and return the answer."""
        raise NotImplementedError

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case is skipped, or None."""
        if case.argv is not None and not self.accepts_argv:
            return "it takes values, not command line arguments"
        return case.skip.get(self.name) or case.skip.get(self.surface)


_INTERFACES: list[type[Interface]] = []

InterfaceType = TypeVar("InterfaceType", bound=type[Interface])


def register_interface(interface_class: InterfaceType) -> InterfaceType:
    """Register an interface class, which every parity test then uses."""
    _INTERFACES.append(interface_class)
    return interface_class


def interfaces(app: Tooli) -> list[Interface]:
    """Return every interface of the app."""
    return [kind(app) for kind in _INTERFACES]


def assert_parity(app: Tooli, case: Case) -> JsonObject:
    """Send a case through every interface; return the common envelope without `duration_ms`.

    The tool runs once for each interface, so repeating it must have the same result.
    """
    selected = [interface for interface in interfaces(app) if interface.skip_reason(case) is None]
    assert selected, f"no interface accepts {case}"
    responses = [(interface, interface.send_case(case)) for interface in selected]
    first, reference = next((pair for pair in responses if not pair[0].streams), responses[0])
    differences = [
        difference
        for interface, response in responses
        if (difference := _difference(first, reference, interface, response))
    ]
    assert not differences, f"the interfaces disagree about {case}\n" + "\n".join(differences)
    return without_volatile_fields(reference.envelope)


def _difference(
    first: Interface, reference: InterfaceResponse, other: Interface, response: InterfaceResponse
) -> str:
    expected = normalize_next_steps(first.app, without_volatile_fields(reference.envelope))
    found = normalize_next_steps(first.app, without_volatile_fields(response.envelope))
    if other.streams and not first.streams:
        expected = as_items(expected)
    text = diff(format_json(expected), format_json(found), first.name, other.name)
    codes = reference.exit_code, response.exit_code
    if None not in codes and codes[0] != codes[1]:
        text += f"exit code: {codes[0]} ({first.name}), {codes[1]} ({other.name})\n"
    return text


def without_volatile_fields(envelope: Mapping[str, Any]) -> JsonObject:
    """Return an envelope without the fields that differ between calls: duration and plan token."""
    found = dict(envelope)
    if "result" in found:
        found["result"] = _without_token(found["result"])
    if "meta" in found:
        found["meta"] = {k: v for k, v in found["meta"].items() if k != "duration_ms"}
    return found


def _without_token(result: object) -> object:
    """Return a result without the token of a plan, which may be the only item of a stream."""
    if is_list(result) and len(result) == 1:
        return [_drop_token(result[0])]
    return _drop_token(result)


def _drop_token(plan: object) -> object:
    if is_object(plan) and {"tool", "basis", "token"} <= plan.keys():
        return {name: value for name, value in plan.items() if name != "token"}
    return plan


def as_items(envelope: Mapping[str, Any]) -> JsonObject:
    """Return an envelope as a stream reports it: items or an error, without metadata."""
    if not envelope["ok"]:
        return {"ok": False, "error": envelope["error"]}
    result = envelope.get("result", [])
    return {"ok": True, "result": result if isinstance(result, list) else [result]}


def format_json(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def diff(expected: str, found: str, one: str, other: str) -> str:
    """Return a unified diff; empty if the values are equal."""
    lines = difflib.unified_diff(
        expected.splitlines(keepends=True), found.splitlines(keepends=True), one, other, n=4
    )
    return "".join(lines)


# ------------------------------------------------------------------ Python


@register_interface
class CallInterface(Interface):
    """`app.call`."""

    name, surface = "call", "python"

    def send_case(self, case: Case) -> InterfaceResponse:
        """Call the tool and return the answer."""
        return _response_from_result(
            self.app.options(**case.options).call(case.tool, **case.arguments)
        )


@register_interface
class AsyncCallInterface(Interface):
    """`await app.acall`."""

    name, surface = "acall", "python"

    def send_case(self, case: Case) -> InterfaceResponse:
        """Call the tool and return the answer."""
        surface = self.app.options(**case.options)
        return _response_from_result(run_awaitable(surface.acall(case.tool, **case.arguments)))


@register_interface
class StreamInterface(Interface):
    """`app.stream`."""

    name, surface, streams = "stream", "python", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the items, or the error that ended them."""
        items = self.app.options(**case.options).stream(case.tool, **case.arguments)
        return _response_from_items(items, self.app)


@register_interface
class AsyncStreamInterface(Interface):
    """`app.astream`."""

    name, surface, streams = "astream", "python", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the items, or the error that ended them."""
        surface = self.app.options(**case.options)
        return _response_from_items(
            iterate_async(surface.astream(case.tool, **case.arguments)), self.app
        )


def _response_from_result(result: TooliResult[Any]) -> InterfaceResponse:
    code = 0 if result.error is None else result.error.to_exception().exit_code
    return InterfaceResponse(json.loads(result.model_dump_json()), code)


def _response_from_items(items: Iterable[object], app: Tooli) -> InterfaceResponse:
    """Return the items, or the error that ended them, as another process would receive them."""
    policy, received = RedactionPolicy(app._state.policy), list[object]()
    presenter = ItemPresenter(policy)
    try:
        received += (json.loads(presenter.encode(item)) for item in items)
    except ToolError as error:
        fields = json.loads(ItemPresenter(policy, part="error").encode(error.to_dict()))
        return InterfaceResponse({"ok": False, "error": fields}, error.exit_code)
    return InterfaceResponse({"ok": True, "result": received}, 0)


# ------------------------------------------------------------------ the command line


@register_interface
class CommandLineInterface(Interface):
    """The command line, parsed by tooli where possible."""

    name, surface, accepts_argv = "cli", "cli", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope on stdout."""
        done = invoke(self.app, *command_line(self.app, case), mode="json")
        return InterfaceResponse(done.envelope, done.exit_code)


@register_interface
class JsonLinesInterface(Interface):
    """The command line with `--jsonl`."""

    name, surface, accepts_argv, streams = "jsonl", "cli", True, True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the lines on stdout, or the error in the last line if the stream failed."""
        return _response_from_lines(invoke(self.app, *command_line(self.app, case), mode="jsonl"))


@register_interface
class TyperInterface(Interface):
    """The command line, parsed by Typer."""

    name, surface, accepts_argv = "typer", "cli", True

    def send_case(self, case: Case) -> InterfaceResponse:
        """Return the envelope on stdout."""
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
    """Return the arguments of the command line for a case, without the program."""
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


def normalize_next_steps(app: Tooli, envelope: Mapping[str, Any]) -> JsonObject:
    """Return an envelope in which the command lines in `meta.next` are parsed.

    Equivalent lines differ in their text: one interface builds a line from arguments, another one
    repeats what was typed.
    """
    envelope = _mask_approval(envelope)
    meta = dict(envelope.get("meta", {}))
    if "next" in meta:
        steps = [{**step, "argv": _parse_argv(app, step["argv"])} for step in meta["next"]]
        meta["next"] = steps
    if "truncated" in meta:  # a command line writes the whole result to a new file each time
        meta["truncated"] = {k: v for k, v in meta["truncated"].items() if k != "full"}
    return {**envelope, "meta": meta} if meta else dict(envelope)


def _mask_approval(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace id and expiry of an approval request, which differ for each call."""
    error: JsonObject = envelope.get("error") or {}
    details: JsonObject = error.get("details") or {}
    approval = details.get("approval")
    if approval is None:
        return envelope
    text = json.dumps(envelope).replace(approval["id"], "ID")
    return json.loads(text.replace(approval["expires"], "EXPIRES"))


def _parse_argv(app: Tooli, argv: Sequence[str]) -> JsonObject:
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
