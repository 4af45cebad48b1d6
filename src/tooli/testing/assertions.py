"""Check that interfaces agree and examples work, and compare an app with reviewed files.

assert_parity sends one request through every interface. The comparison ignores parts that differ
between calls or interfaces, such as `duration_ms`, `request_id` and the id of an approval request.
Everything else must be equal, and the keys must have the same order.

Set `TOOLI_UPDATE_SNAPSHOTS=1`, or pass `update=True`, to write the files. Review the difference
before you commit it.
"""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooli.cli.argv import parse_command_line
from tooli.core.command_words import command_words
from tooli.describe.calls import insert_flags
from tooli.pipeline.dry_run_recorder import DryRunExecutionDisabled
from tooli.schema import RawText
from tooli.testing.app_interfaces import CommandLineInterface, as_items, interfaces
from tooli.testing.command_runner import app_name, invoke
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tooli.app import Tooli
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.testing.app_interfaces import Case, Interface, InterfaceResponse

# ------------------------------------------------------------------ parity


_VARYING_META = ("duration_ms", "request_id")


def assert_parity(app: Tooli, case: Case) -> JsonObject:
    """Send a case through every interface; return the common envelope without volatile fields.

    The tool runs once for each interface, so repeating it must have the same result.
    """
    selected = [interface for interface in interfaces(app) if interface.skip_reason(case) is None]
    assert selected, f"no interface accepts {case}"
    responses = [(interface, interface.send_case(case)) for interface in selected]
    first, reference = next((pair for pair in responses if not pair[0].streams), responses[0])
    differences = [
        difference
        for interface, response in responses
        if (difference := _difference(first, reference, interface, response, case.tool))
    ]
    assert not differences, f"the interfaces disagree about {case}\n" + "\n".join(differences)
    return without_volatile_fields(reference.envelope)


def _difference(
    first: Interface,
    reference: InterfaceResponse,
    other: Interface,
    response: InterfaceResponse,
    tool_name: str,
) -> str:
    expected = _normalize_envelope(first.app, reference.envelope, tool_name)
    found = _normalize_envelope(first.app, response.envelope, tool_name)
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
        found["meta"] = {k: v for k, v in found["meta"].items() if k not in _VARYING_META}
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


def _normalize_envelope(app: Tooli, envelope: Mapping[str, Any], tool_name: str) -> JsonObject:
    """Return an envelope without the parts that may differ between interfaces.

    A suggested call, also one in `meta.next`, is a command line, or arguments and options. It is
    parsed, because equivalent lines differ in their text: one interface builds a line from
    arguments, another one repeats the typed line. The other text is in the words of the interface.
    """
    envelope = _mask_approval(without_volatile_fields(envelope))
    meta = dict(envelope.get("meta", {}))
    error: JsonObject = envelope.get("error") or {}
    if "suggestion" in error:
        suggestion = _normalize_suggestion(app, error["suggestion"], tool_name)
        envelope = {**envelope, "error": {**error, "suggestion": suggestion}}
    if "next" in meta:
        meta["next"] = [_normalize_suggestion(app, step, tool_name) for step in meta["next"]]
    if "truncated" in meta:  # a command line writes the whole result to a new file each time
        meta["truncated"] = {k: v for k, v in meta["truncated"].items() if k != "full"}
    return {**envelope, "meta": meta} if meta else dict(envelope)


def _normalize_suggestion(app: Tooli, suggestion: Mapping[str, Any], tool_name: str) -> JsonObject:
    """Return a suggestion with its call in a form that does not depend on the interface."""
    forms = ("fix", "example", "argv", "command", "arguments", "query", "options")
    kept = {name: value for name, value in suggestion.items() if name not in forms}
    if "argv" in suggestion:
        parsed = _parse_argv(app, suggestion["argv"])
        # An argv of the author that names no command of the app has no form elsewhere.
        return {**kept, "call": parsed} if parsed["path"] or app.tree().only_command else kept
    if "arguments" not in suggestion and "command" not in suggestion:
        return kept
    suggested: JsonObject = suggestion.get("arguments", {})
    name = suggestion.get("command") or tool_name
    tool = app.find(name)
    params = () if tool is None else tool.param_names
    arguments = {k: v for k, v in suggested.items() if k in params}
    options = {k: v for k, v in suggested.items() if k not in params}
    options |= {**suggestion.get("query", {}), **suggestion.get("options", {})}
    if options.pop("detailed", False):  # the name in Python
        options["response_format"] = "detailed"
    call: JsonObject = {
        "path": name.split("."),
        "arguments": {k: _as_texts(v) for k, v in sorted(arguments.items())},
        "options": {k: str(v) for k, v in sorted(options.items())},
    }
    return {**kept, "call": call}


def _as_texts(value: object) -> object:
    """Return an argument as the words of a command line."""
    if isinstance(value, bool):
        return value
    return [
        item if isinstance(item, str) else json.dumps(item, separators=(",", ":"))
        for item in (value if is_list(value) else [value])
    ]


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
    line = parse_command_line(app.tree(), argv[1:])
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


# ------------------------------------------------------------------ examples

_FILE_MESSAGES = (
    *("does not exist", "cannot be read", "is a file", "is a directory"),
    *("is not readable", "is not writable"),
)
"""Messages that are ignored, because an example may name files that do not exist."""


def assert_examples(app: Tooli) -> None:
    """Check that each command of the app accepts all of its `examples=`."""
    problems = [
        f"{tool.key}: {problem}"
        for tool in app.catalog
        for example in tool.guidance.examples
        for problem in _example_problems(app, tool, example)
    ]
    assert not problems, "examples that do not work:\n" + "\n".join(problems)


def check_line(app: Tooli, argv: Sequence[str]) -> list[str]:
    """Return the problems of a command line, which does not include the program.

    The app parses the line and runs all checks of a dry run. Files need not exist.
    """
    json_argv = insert_flags(argv, ["--tooli-json"])  # overrides the output mode of the line
    with DryRunExecutionDisabled():
        command_result = invoke(app, "--tooli-dry-run", *json_argv, mode="json")
    if command_result.exit_code == 0:
        return []
    error = command_result.error or {}
    if error.get("category") != "input":
        return []
    found: list[JsonObject] = error.get("details", {}).get("errors") or [error]
    return [
        f"{problem['message']} [{problem['code']}]"
        for problem in found
        if not any(reason in problem["message"] for reason in _FILE_MESSAGES)
    ]


def _example_problems(
    app: Tooli, tool: Tool, example: Mapping[str, Sequence[object]]
) -> Iterator[str]:
    argv = [str(argument) for argument in example["args"]]
    for problem in check_line(app, command_words(tool, argv)):
        yield f"{' '.join(argv)}: {problem}"


# ------------------------------------------------------------------ snapshots

UPDATE_VARIABLE = "TOOLI_UPDATE_SNAPSHOTS"


def assert_schema_snapshot(
    app: Tooli, path: str | Path, *, form: str = "json", update: bool = False
) -> None:
    """Check the app's `--schema` against a file; `form` is json, mcp, openai or anthropic."""
    found = invoke(app, "--schema", form)
    assert found.ok, found.stdout
    _compare(format_json(json.loads(found.stdout)), Path(path), update)


def assert_envelope_snapshot(
    app: Tooli, cases: Iterable[Case], path: str | Path, *, update: bool = False
) -> None:
    """Check the answers to some cases against a file, without volatile fields."""
    interface = CommandLineInterface(app)
    entries: list[JsonObject] = []
    for case in cases:
        response = interface.send_case(case)
        request = {"tool": case.tool, "arguments": case.arguments, "options": case.options}
        entries.append(
            {
                **{name: value for name, value in request.items() if value},
                **({} if case.argv is None else {"words": list(case.argv)}),
                "exit_code": response.exit_code,
                "envelope": without_volatile_fields(response.envelope),
            }
        )
    _compare(format_json(json.loads(encode(entries, []))), Path(path), update)


def assert_help_snapshot(app: Tooli, path: str | Path, *, update: bool = False) -> None:
    """Check the help of the app and of each command, for people and for agents, against a file."""
    pages: list[str] = []
    for command_path in _command_paths(app):
        for help_flags in (("--help", "--plain"), ("--help-agent",)):
            page = invoke(app, *command_path, *help_flags)
            assert page.ok, page.stdout
            line = " ".join((app_name(app), *command_path, *help_flags))
            pages.append(f"$ {line}\n{page.stdout}")
    _compare("\n".join(pages), Path(path), update)


def _command_paths(app: Tooli) -> list[tuple[str, ...]]:
    """Return the paths of the app, its groups and its commands, parents first."""
    if app.tree().only_command is not None:
        return [()]
    paths = [tool.path for tool in app.catalog if not tool.hidden]
    return list(dict.fromkeys(path[:n] for path in [(), *paths] for n in range(len(path) + 1)))


def _compare(found: str, path: Path, update: bool) -> None:
    if update or os.environ.get(UPDATE_VARIABLE, "") not in ("", "0"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
        return
    hint = f"If this is what you want, run again with {UPDATE_VARIABLE}=1 and review the file."
    if not path.exists():
        raise AssertionError(f"There is no snapshot {path} yet. {hint}")
    difference = diff(path.read_text(encoding="utf-8"), found, str(path), "now")
    assert not difference, f"{path} has changed. {hint}\n{difference}"


def format_json(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def diff(expected: str, found: str, expected_name: str, found_name: str) -> str:
    """Return a unified diff; empty if the texts are equal."""
    lines = difflib.unified_diff(
        expected.splitlines(keepends=True),
        found.splitlines(keepends=True),
        expected_name,
        found_name,
        n=4,
    )
    return "".join(lines)
