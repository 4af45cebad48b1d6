"""Examples that were tried: what they really gave, shortened, for the documents."""

from __future__ import annotations

import json

from tooli.errors import StateError, Suggestion
from tooli.text.jsonable import is_list, is_object
from tooli.text.sanitize import sanitize

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

_EXAMPLE_TIMEOUT = 60.0  # seconds for one example
_MAX_ITEMS, _MAX_CHARACTERS = 2, 100  # what is left of a list, and of a text


def with_example_outputs(app_info: AppInfo) -> AppInfo:
    """The portrait with what the examples of its read-only tools gave; none of them may fail."""
    from tooli.install.launch_command import program_argv

    program = program_argv(app_info.name)
    outputs: dict[tuple[str, int], str] = {}
    failures: list[dict[str, Any]] = []
    for tool, number, argv in _runnable_examples(app_info):
        envelope = _run_example([*program, *tool.cli_path, *argv], tool)
        if envelope.get("ok"):
            shortened_envelope = {"ok": True, "result": shorten(envelope.get("result"))}
            outputs[tool.key, number] = json.dumps(shortened_envelope, ensure_ascii=False)
        else:
            failures.append({"command": tool.key, "args": argv, "error": envelope.get("error")})
    if failures:
        names = ", ".join([" ".join([one["command"], *one["args"]]) for one in failures])
        raise StateError(
            f"Examples that do not work here: {names}.",
            suggestion=Suggestion("fix", "Mend them, or run this where their files are."),
            details={"failures": failures},
        )
    return app_info.replace(example_outputs=outputs)


def _runnable_examples(app_info: AppInfo) -> Iterator[tuple[Tool, int, list[str]]]:
    """The examples that change nothing and ask nobody."""
    for tool in app_info.tools:
        guard = tool.guard
        if tool.behavior.read_only and not guard.may_need_approval:
            for number, example in enumerate(tool.guidance.examples):
                yield tool, number, [str(word) for word in example.get("args", ())]


def _run_example(argv: list[str], tool: Tool) -> dict[str, Any]:
    """The envelope of one run; something like one where there is none."""
    from subprocess import DEVNULL, PIPE, TimeoutExpired, run

    separator = argv.index("--") if "--" in argv else len(argv)
    command_line = [*argv[:separator], "--json", *argv[separator:]]
    try:
        done = run(
            command_line,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            timeout=_EXAMPLE_TIMEOUT,
            check=False,
        )
        envelope: object = json.loads(done.stdout)
    except TimeoutExpired:
        return {"error": {"message": f"{tool.key} took more than {_EXAMPLE_TIMEOUT:g} s"}}
    except (OSError, ValueError) as failure:
        return {"error": {"message": str(failure)}}
    return envelope if is_object(envelope) else {"error": {"message": "no envelope"}}


def shorten(value: Any) -> Any:
    """A value with the beginnings of its lists and texts, and a word about the rest.

    It becomes part of a document: under any policy it loses what no document should hold.
    """
    if isinstance(value, str):
        value = sanitize(value)[0]
        return value if len(value) <= _MAX_CHARACTERS else f"{value[:_MAX_CHARACTERS]}…"
    if is_list(value):
        first_items = [shorten(item) for item in value[:_MAX_ITEMS]]
        return (
            [*first_items, f"… {len(value) - _MAX_ITEMS} more"]
            if len(value) > _MAX_ITEMS
            else first_items
        )
    if is_object(value):
        return {sanitize(key)[0]: shorten(item) for key, item in value.items()}
    return value
