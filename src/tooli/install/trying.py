"""Examples that were tried: what they really gave, shortened, for the documents."""

from __future__ import annotations

import json

from tooli.contract.jsonable import is_list, is_object
from tooli.contract.sanitizing import sanitize
from tooli.errors import StateError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.views.portrait import Portrait

_PATIENCE = 60.0  # seconds for one example
_ITEMS, _CHARACTERS = 2, 100  # what is left of a list, and of a text


def with_outputs(portrait: Portrait) -> Portrait:
    """The portrait with what the examples of its read-only tools gave; none of them may fail."""
    from tooli.install.program import running_program

    program = running_program(portrait.name)
    outputs: dict[tuple[str, int], str] = {}
    failures: list[dict[str, Any]] = []
    for tool, number, words in _examples(portrait):
        answer = _run([*program, *tool.words, *words], tool)
        if answer.get("ok"):
            shown = {"ok": True, "result": shortened(answer.get("result"))}
            outputs[tool.key, number] = json.dumps(shown, ensure_ascii=False)
        else:
            failures.append({"command": tool.key, "args": words, "error": answer.get("error")})
    if failures:
        names = ", ".join([" ".join([one["command"], *one["args"]]) for one in failures])
        raise StateError(
            f"Examples that do not work here: {names}.",
            suggestion=Suggestion("fix", "Mend them, or run this where their files are."),
            details={"failures": failures},
        )
    return portrait.replace(outputs=outputs)


def _examples(portrait: Portrait) -> Iterator[tuple[Tool, int, list[str]]]:
    """The examples that change nothing and ask nobody."""
    for tool in portrait.tools:
        guard = tool.guard
        if tool.behavior.read_only and not guard.careful:
            for number, example in enumerate(tool.guidance.examples):
                yield tool, number, [str(word) for word in example.get("args", ())]


def _run(words: list[str], tool: Tool) -> dict[str, Any]:
    """The envelope of one run; something like one where there is none."""
    from subprocess import DEVNULL, PIPE, TimeoutExpired, run

    at = words.index("--") if "--" in words else len(words)
    line = [*words[:at], "--json", *words[at:]]
    try:
        done = run(line, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, timeout=_PATIENCE, check=False)
        answer: object = json.loads(done.stdout)
    except TimeoutExpired:
        return {"error": {"message": f"{tool.key} took more than {_PATIENCE:g} s"}}
    except (OSError, ValueError) as failure:
        return {"error": {"message": str(failure)}}
    return answer if is_object(answer) else {"error": {"message": "no envelope"}}


def shortened(value: Any) -> Any:
    """A value with the beginnings of its lists and texts, and a word about the rest.

    It becomes part of a document: under any policy it loses what no document should hold.
    """
    if isinstance(value, str):
        value = sanitize(value)[0]
        return value if len(value) <= _CHARACTERS else f"{value[:_CHARACTERS]}…"
    if is_list(value):
        kept = [shortened(item) for item in value[:_ITEMS]]
        return [*kept, f"… {len(value) - _ITEMS} more"] if len(value) > _ITEMS else kept
    if is_object(value):
        return {sanitize(key)[0]: shortened(item) for key, item in value.items()}
    return value
