"""Outcomes, kept: as JSON, so that whoever reads them back need not trust where they were.

What a replay gives is written as the first answer was. A `Page`, a `Next` and content that is
shown are what they were; other values are JSON's own types, but for Python callers, who get
what the tool's annotation says. What entered as a secret is not kept: who replays a call reads
none, and so could hide none.
"""

from __future__ import annotations

from tooli.call.cleaning import Cleaner
from tooli.call.envelope import encode, weigh
from tooli.call.model import Failed, Ok
from tooli.contract.jsonable import DEEPEST, is_list, is_object, jsonable
from tooli.contract.record import Record
from tooli.contract.tool import MISSING
from tooli.errors import Suggestion, ToolError, class_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tooli.call.model import Call, Outcome
    from tooli.contract.tool import Tool

MOST = 16 << 20
"""Bytes of an outcome that are kept."""
UNKEPT = b'{"large":true}'
"""What stands for an outcome that is too large, or cannot be written."""


class Kept(Record):
    """An outcome read back."""

    outcome: Outcome | None  # None: it was not kept
    printed: str = ""
    warnings: tuple[str, ...] = ()


def cleaner_for(call: Call) -> Cleaner | None:
    """What takes the secrets of a call out of what is kept of it; None where there are none."""
    cleaner = Cleaner(call) if call.secrets else None
    return cleaner if cleaner is not None and cleaner.traces else None


def pack(
    outcome: Outcome, printed: str, warnings: list[str], cleaner: Cleaner | None = None
) -> tuple[bytes, Outcome]:
    """An outcome as it is kept, and the outcome: a part that can be read but once is a copy now.

    What is left out of a copy is said in `warnings`.
    """
    told = list(warnings)
    if isinstance(outcome, Failed):
        kept: dict[str, Any] = {"failed": _error_parts(outcome.error, cleaner)}
    else:
        value, kept = _value_parts(outcome.value, told, cleaner)
        if value is not outcome.value:
            outcome, warnings[:] = Ok(value), told
    if printed:
        kept["printed"] = _bare(printed, cleaner)
    _tell(kept, told, cleaner, "error" if isinstance(outcome, Failed) else "result")
    data = encode(kept, [])
    return (data if len(data) <= MOST else UNKEPT), outcome


def pack_items(
    items: list[bytes] | None, warnings: list[str], cleaner: Cleaner | None = None
) -> bytes:
    """The items of a stream as they are kept; None where there were too many."""
    if items is None:
        return UNKEPT
    if cleaner is not None:
        from json import loads

        items = [encode(_bare(loads(item), cleaner), []) for item in items]
    rest: dict[str, Any] = {}
    _tell(rest, warnings, cleaner, "result")
    return b'{"value":[' + b",".join(items) + b"]" + (b"," + encode(rest, [])[1:] if rest else b"}")


def _tell(kept: dict[str, Any], warnings: list[str], cleaner: Cleaner | None, what: str) -> None:
    """Keep the warnings as well, and one about what was hidden, as the first answer has it."""
    warnings = list(warnings)
    if cleaner is not None and cleaner.secrets:
        cleaner.tell(warnings, what)
    if warnings:
        kept["warnings"] = _bare(warnings, cleaner)


def unpack(data: bytes) -> Kept:
    """What was kept; raises ValueError where that cannot be read."""
    from json import loads

    try:
        kept = loads(data)
        if "failed" in kept:
            outcome: Outcome | None = Failed(_error(kept["failed"]))
        elif "large" in kept:
            outcome = None
        else:
            outcome = Ok(_value(kept))
        warnings = tuple(kept.get("warnings", ()))
        return Kept(outcome, kept.get("printed", ""), warnings)
    except (KeyError, TypeError, AttributeError, RecursionError) as strange:
        raise ValueError(str(strange)) from strange


# ------------------------------------------------------------------ values


def _value_parts(
    value: Any, warnings: list[str], cleaner: Cleaner | None
) -> tuple[Any, dict[str, Any]]:
    """The value, and what stands for it."""
    kind = value.__class__
    if kind.__module__ == "tooli.contract.pages":
        from tooli.contract.pages import Page

        _, items, _ = weigh(value.items, warnings)
        page = Page(items, next_cursor=value.next_cursor, total=value.total)
        rest = {"next_cursor": _bare(value.next_cursor, cleaner), "total": value.total}
        return page, {"page": {"items": _bare(items, cleaner), **rest}}
    if kind.__module__ == "tooli.contract.handoffs":
        result, parts = _value_parts(value.result, warnings, cleaner)
        value.result = result
        steps = [
            [step.command, _bare(step.arguments, cleaner), _bare(step.why, cleaner)]
            for step in value.steps
        ]
        return value, {"next": {"result": parts, "steps": steps}}
    if _is_shown(value):
        listed = kind in (list, tuple)
        blocks = [_block(item, cleaner) for item in (value if listed else (value,))]
        return value, {"shown": blocks, "listed": listed}
    _, copy, _ = weigh(value, warnings)
    return (value if _is_json(value) else copy), {"value": _bare(copy, cleaner)}


def _bare(value: Any, cleaner: Cleaner | None) -> Any:
    """A value in which no secret stands: where one does, as it may go out; else as it is."""
    if cleaner is None:
        return value
    before = cleaner.secrets
    clean = cleaner.value(jsonable(value, []))
    return clean if cleaner.secrets > before else value


def _is_json(value: Any, room: int = DEEPEST) -> bool:
    """Whether all of it can be read as often as one likes: NaN as well, which JSON has not.

    What is deeper than anything is written is not looked into: it may contain itself. The first
    no ends it, for there may be many ways to the same part.
    """
    if is_object(value):
        return room > 0 and all(_is_json(item, room - 1) for item in value.values())
    if is_list(value):
        return room > 0 and all(_is_json(item, room - 1) for item in value)
    return value is None or isinstance(value, (str, int, float))


def _value(kept: dict[str, Any]) -> Any:
    if "page" in kept:
        from tooli.contract.pages import Page

        page = kept["page"]
        return Page(page["items"], next_cursor=page["next_cursor"], total=page["total"])
    if "next" in kept:
        from tooli.contract.handoffs import Next

        onward = Next(_value(kept["next"]["result"]))
        for command, arguments, why in kept["next"]["steps"]:
            onward.then(command, arguments, why=why)
        return onward
    if "shown" in kept:
        items = [_shown(*block) for block in kept["shown"]]
        return items if kept["listed"] else items[0]
    return kept["value"]


def _is_shown(value: Any) -> bool:
    import sys

    home = sys.modules.get("tooli.contract.content")
    return home is not None and home.is_content(value)


def _block(item: Any, cleaner: Cleaner | None) -> list[Any]:
    from base64 import b64encode

    from tooli.contract.content import Content

    if not isinstance(item, Content):
        return ["", _bare(item, cleaner)]
    fields: dict[str, Any] = {}
    for name in type(item).__match_args__:
        part = getattr(item, name)
        raw = isinstance(part, bytes)
        fields[name] = [b64encode(part).decode()] if raw else _bare(part, cleaner)
    return [type(item).__name__, fields]


def _shown(kind: str, fields: Any) -> Any:
    from base64 import b64decode

    from tooli.contract import content

    if not kind:
        return fields
    known = {one.__name__: one for one in content.Content.__subclasses__()}
    parts = {n: b64decode(p[0]) if isinstance(p, list) else p for n, p in fields.items()}  # pyright: ignore
    return known[kind](**parts)


def revive(tool: Tool, value: Any) -> Any:
    """A value as the tool's annotation has it, where that says the same; else as it is."""
    found = _readers.get(tool.id)
    if found is None or found[0] is not tool.returns:
        found = _readers[tool.id] = (tool.returns, _reader(tool))
    read = found[1]
    if read is None or value is None:
        return value
    text = encode(value, [])
    try:
        alive = read(text)
        return alive if encode(alive, []) == text else value
    except Exception:  # it was not what the annotation says, or cannot be read back
        return value


_readers: dict[str, tuple[Any, Callable[[bytes], Any] | None]] = {}


def _reader(tool: Tool) -> Callable[[bytes], Any] | None:
    """What makes of JSON what the annotation says; None where that is JSON's own."""
    from tooli.contract.reading import returns_of

    annotation = returns_of(tool)
    name = getattr(getattr(annotation, "__origin__", None), "__name__", "")
    if name in ("Generator", "Iterator", "Iterable", "AsyncGenerator", "AsyncIterator"):
        from types import GenericAlias

        annotation = GenericAlias(list, annotation.__args__[:1])
    if _is_plain(annotation):
        return None
    from tooli.contract.models import adapter

    try:
        return adapter(annotation).validate_json
    except Exception:  # pydantic cannot read it
        return None


def _is_plain(annotation: Any) -> bool:
    if annotation in (MISSING, None, type(None), str, int, float, bool, dict, list):
        return True
    plain = getattr(annotation, "__origin__", None) in (dict, list)
    return plain and all([_is_plain(part) for part in annotation.__args__])


# ------------------------------------------------------------------ errors

_FIXED = ("code", "category", "is_retryable")
"""Fields of an error that say what kind it is: nobody's words."""


def _error_parts(error: ToolError, cleaner: Cleaner | None) -> dict[str, Any]:
    kind, said = type(error), error.to_dict()
    if cleaner is not None:
        own = {name: part for name, part in said.items() if name not in _FIXED}
        said.update(cleaner.error(jsonable(own, [])))
    return {
        "kind": f"{kind.__module__}:{kind.__qualname__}",
        "said": said,
        "exit_code": error.exit_code,
        "http_status": error.http_status,
    }


def _error(parts: dict[str, Any]) -> ToolError:
    said = parts["said"]
    kind = _class_named(parts["kind"]) or class_of(said["code"], said["category"])
    error = kind.__new__(kind)
    suggestion = said.get("suggestion")
    ToolError.__init__(
        error,
        said["message"],
        code=said["code"],
        field=said.get("field"),
        suggestion=Suggestion.from_dict(suggestion) if suggestion else None,
        is_retryable=said["is_retryable"],
        details=said.get("details"),
        exit_code=parts["exit_code"],
    )
    error.http_status = parts["http_status"]
    error.translated = True
    if error.category != said["category"]:  # of a class that is not here
        error.__dict__["category"] = said["category"]
    return error


def _class_named(name: str) -> type[ToolError] | None:
    classes = [ToolError]
    for known in classes:
        if f"{known.__module__}:{known.__qualname__}" == name:
            return known
        classes.extend(known.__subclasses__())
    return None
