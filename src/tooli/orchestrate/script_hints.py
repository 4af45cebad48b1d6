"""What to write instead of Python that the sandbox does not have.

Some of it is found in the source before anything runs (`find_unsupported`), because the sandbox
would fail in the middle of the script. The rest is found by its own messages (`hint_for`).
"""

from __future__ import annotations

import re

from tooli.core import Record
from tooli.orchestrate.script_tools import MODULES
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ScriptProblem(Record):
    """One error that is found in a script before it runs."""

    line: int
    column: int
    message: str
    hint: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the problem as `details.errors` shows it."""
        fields = {
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "hint": self.hint,
        }
        return {name: value for name, value in fields.items() if value is not None}


_TEXTS = re.compile(
    r'"""(?:\\.|[^\\])*?"""|'
    r"'''(?:\\.|[^\\])*?'''|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'(?:\\.|[^'\\\n])*'|"
    r"#[^\n]*",
    re.DOTALL,
)

_NEXT_HINT = (
    "A generator expression is a list here. Write `next(iter([… for … in …]), None)`, or "
    "`[… for … in …][0]`."
)
_GATHER_HINT = "Catch the exception in an async function around each call, and gather these."
_UNSUPPORTED = (
    (r"\breturn_exceptions\s*=", "gather() has no argument return_exceptions", _GATHER_HINT),
    (
        r"(?<![.\w])(?:eval|exec)\s*\(",
        "eval() and exec() are not available: a script does not make code from data",
        "Write the expression in the script itself.",
    ),
    (
        r"\bjson\.dumps\s*\([^()]*\bdefault\s*=",
        "json.dumps() has no argument default",
        "Convert the values before: dates with .isoformat(), others with str().",
    ),
    (
        r"\bre\.sub\s*\([^()]*\blambda\b",
        "re.sub() takes no function",
        "Iterate over re.finditer() and join the parts.",
    ),
)
_UNSUPPORTED_PATTERNS = tuple([(re.compile(found), *rest) for found, *rest in _UNSUPPORTED])

_HINTS = (
    ("'list' object is not an iterator", _NEXT_HINT),
    ("yield", "Return a list instead of yielding its items."),
    ("class inheritance", "Use a class without a base, or a dict. Raise ValueError for errors."),
    ("method decorators", "Write a method without a decorator, or a function."),
    ("'del' statement", "Use `d.pop(key)`, or build a new list without the item."),
    ("async with", "Call the tools without `async with`; asyncio.gather runs them in parallel."),
    ("exception groups", "Use `except` without the star."),
    ("type aliases", "Write the type where it is used; annotations are optional."),
    ("return_exceptions", _GATHER_HINT),
    ("gather() does not yet support", _GATHER_HINT),
    ("callable replacement", _UNSUPPORTED[3][2]),
    ("has no member `create_task`", "asyncio.gather runs calls in parallel: `await gather(…)`."),
    ("has no member `TaskGroup`", "asyncio.gather runs calls in parallel: `await gather(…)`."),
    ("has no member `wait_for`", "The option timeout limits the time of the whole script."),
    ("has no member `exit`", "Use `return`, which works at the top level, or raise an exception."),
    ("CoroutineType", "Write `await` before the call."),
    ("is not awaited", "Write `await` before the call."),
    ("'coroutine' object", "Write `await` before the call."),
    ("from 'typing'", "Annotations are optional; the classes of the stubs need no import."),
    ("Cannot resolve imported module", f"A script can import: {', '.join(MODULES)}."),
    ("No module named", f"A script can import: {', '.join(MODULES)}."),
    ("Name `open` used", "A script has no files. Call a tool that reads or writes them."),
    ("Name `input` used", "A script cannot ask. Pass values with the option inputs."),
)


def hint_for(message: str, names: Iterable[str] = ()) -> str | None:
    """Return what to write instead, for a message of the sandbox or of its type checker.

    `names` are the names that the script may have meant.
    """
    for text, hint in _HINTS:
        if text in message:
            return hint
    unknown = re.match(r"Name `(\w+)` used when not defined", message)
    unknown = unknown or re.match(r"Argument `(\w+)` does not match any known parameter", message)
    if unknown is not None:
        return did_you_mean(unknown[1], names).removeprefix("; ").capitalize() or None
    return None


def find_unsupported(source: str) -> list[ScriptProblem]:
    """Return what the sandbox would refuse only while the script runs."""
    masked = _TEXTS.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), source)
    found = [
        (match.start(), message, hint)
        for pattern, message, hint in _UNSUPPORTED_PATTERNS
        for match in pattern.finditer(masked)
    ]
    text = "next() does not take a generator expression"
    found += [(position, text, _NEXT_HINT) for position in _next_of_generators(masked)]
    return [
        ScriptProblem(*_position(source, position), message, hint)
        for position, message, hint in sorted(found)
    ]


def _next_of_generators(masked: str) -> Iterator[int]:
    """Yield the positions of `next(… for … in …)`."""
    for match in re.finditer(r"(?<![.\w])next\s*\(", masked):
        first = _first_argument(masked, match.end()).strip()
        while first[:1] == "(" and first[-1:] == ")":
            first = first[1:-1].strip()
        is_other_call = re.match(r"[\w.]+\s*\(|\[", first)
        if not is_other_call and re.search(r"\bfor\b", first):
            yield match.start()


def _first_argument(text: str, start: int) -> str:
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and text[i] == ","):
            return text[start:i]
    return text[start:]


def _position(source: str, position: int) -> tuple[int, int]:
    """Return the line and the column of a position, both from 1."""
    line_start = source.rfind("\n", 0, position) + 1
    return source.count("\n", 0, position) + 1, position - line_start + 1
