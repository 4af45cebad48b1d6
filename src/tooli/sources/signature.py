"""The signature of a tool, as an agent reads it: one line, with all that a call needs."""

from __future__ import annotations

from tooli.contract import tool as shapes
from tooli.contract.reading import returns_of, shape_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Param, Shape, Tool

_WIDEST, _FEW = 300, 6  # characters of a signature, choices that are shown
_ESCAPES = {**{i: f"\\u{i:04x}" for i in range(32)}, 34: '\\"', 92: "\\\\"}


def signature(tool: Tool) -> str:
    """A tool as an agent reads it; too long, it loses optional parameters and words at the end.

    `find-files(pattern: str, root: path = ".", limit?: int) -> str[]  # Find files. [read-only]`
    """
    marks = [word for word in tool.behavior.words() if word in ("read-only", "destructive")]
    marks += ["needs approval"] if tool.guard.human else []
    marks += ["deprecated"] if tool.deprecated else []
    said = f"[{', '.join(marks)}]" if marks else ""
    name, result = _cut(tool.key or tool.name, 80), _cut(_result(tool), 80)
    head = f"{name}({_given(tool, 200 - len(name) - len(result))}){result}"
    summary = _cut(" ".join(tool.doc.summary.split()), _WIDEST - len(head) - len(said) - 5)
    return f"{head}  # {f'{summary} {said}'.strip()}" if summary or said else head


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 1, 0)] + "…"


def _given(tool: Tool, room: int) -> str:
    """The parameters; optional ones are left out, from the end, until the rest has room."""
    shown = [param for param in tool.public if param.required or not param.hidden]
    words = [_declared(param) for param in shown]
    for at in range(len(words) - 1, -1, -1):
        if not shown[at].required and len(", ".join(words)) > room:
            del words[at]
    return _cut(", ".join(words if len(words) == len(shown) else [*words, "…"]), max(room, 60))


def _declared(param: Param) -> str:
    """One parameter; a default that is None, long or not JSON's is only said to be there."""
    if param.required:
        return f"{param.name}: {_word(param.shape)}"
    default = "null" if param.default is shapes.MISSING else _json(param.default)
    if default == "null" or len(default) > 40:
        return f"{param.name}?: {_word(shapes.plain(param.shape))}"
    return f"{param.name}: {_word(param.shape)} = {default}"


def _json(value: Any) -> str:
    """Any value as JSON; the module `json` would cost more than the search."""
    from tooli.contract.jsonable import is_list, is_object, jsonable

    warnings: list[str] = []
    value = jsonable(value, warnings)
    if warnings or value is None:
        return "null"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if is_list(value):
        return f"[{', '.join(map(_json, value))}]"
    if is_object(value):
        return f"{{{', '.join([f'{_json(key)}: {_json(part)}' for key, part in value.items()])}}}"
    return str(value).lower()  # true, false or a number


def _word(shape: Shape) -> str:
    """The type of a value, as briefly as it can be said."""
    match shape:
        case shapes.Scalar(kind):
            return kind.__name__
        case shapes.PathShape():
            return "path"
        case shapes.Choice():
            return _either(choices(shape))
        case shapes.ListOf(item):
            word = _word(item)
            return f"({word})[]" if "|" in word else f"{word}[]"
        case shapes.TupleOf(items):
            return f"[{', '.join(map(_word, items))}]"
        case shapes.Maybe(item):
            return f"{_word(item)}|null"
        case shapes.Text(annotation) | shapes.Structured(annotation):
            return _named(annotation, "object" if isinstance(shape, shapes.Structured) else "")
        case _:
            return "str"


def _named(annotation: Any, fallback: str) -> str:
    """The type of a value that pydantic reads: the parts of a union, or the name of a class."""
    if hasattr(annotation, "__metadata__"):
        return _word(shape_of(annotation.__origin__))
    parts: tuple[Any, ...] = getattr(annotation, "__args__", ())
    kind = str(getattr(getattr(annotation, "__origin__", annotation), "__name__", "any"))
    if "Union" in type(annotation).__name__:
        return "|".join(["null" if part is type(None) else _word(shape_of(part)) for part in parts])
    if kind == "Literal":
        return _either(parts)
    if kind.endswith(("Iterator", "Generator")) and parts:
        return _word(shapes.ListOf(shape_of(parts[0])))
    if kind in ("list", "set", "tuple") and not isinstance(shape_of(annotation), shapes.Structured):
        return _word(shape_of(annotation))  # a list in a list
    return fallback or ("any" if annotation is object else kind.lower())


def choices(shape: Shape) -> tuple[Any, ...]:
    """The values that a shape allows, where it allows but a few."""
    values = shape.values if isinstance(shape, shapes.Choice) else ()
    return tuple([getattr(value, "value", value) for value in values])


def _either(values: tuple[Any, ...]) -> str:
    return "|".join(map(_json, values[:_FEW])) + ("|…" if len(values) > _FEW else "")


def _result(tool: Tool) -> str:
    try:
        annotation = returns_of(tool)
    except Exception:  # it names what only type checkers see
        return ""
    said = annotation not in (shapes.MISSING, None, type(None))
    return f" -> {_word(shape_of(annotation))}" if said else ""
