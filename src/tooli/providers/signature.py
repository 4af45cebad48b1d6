"""Format the signature of a tool as one line, for agents."""

from __future__ import annotations

from tooli.core import tool as shapes
from tooli.schema.tool_reader import infer_shape, return_annotation

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool

_MAX_SIGNATURE_CHARS, _MAX_CHOICES = 300, 6
_ESCAPES = {**{i: f"\\u{i:04x}" for i in range(32)}, 34: '\\"', 92: "\\\\"}


def format_signature(tool: Tool) -> str:
    """Return a tool as one line. If it is too long, optional parameters and text are cut.

    `find-files(pattern: str, root: path = ".", limit?: int) -> str[]  # Find files. [read-only]`
    """
    labels = [label for label in tool.behavior.labels() if label in ("read-only", "destructive")]
    labels += ["needs approval"] if tool.guard.needs_human else []
    labels += ["deprecated"] if tool.deprecated else []
    suffix = f"[{', '.join(labels)}]" if labels else ""
    name, result = _truncate(tool.key or tool.name, 80), _truncate(_format_result(tool), 80)
    head = f"{name}({_format_parameters(tool, 200 - len(name) - len(result))}){result}"
    summary = _truncate(
        " ".join(tool.doc.summary.split()), _MAX_SIGNATURE_CHARS - len(head) - len(suffix) - 5
    )
    return f"{head}  # {f'{summary} {suffix}'.strip()}" if summary or suffix else head


def _truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max(max_chars - 1, 0)] + "…"


def _format_parameters(tool: Tool, max_chars: int) -> str:
    """Return the parameters. If they are too long, optional ones are left out from the end."""
    shown = [param for param in tool.public_params if param.required or not param.hidden]
    formatted = [_format_parameter(param) for param in shown]
    for at in range(len(formatted) - 1, -1, -1):
        if not shown[at].required and len(", ".join(formatted)) > max_chars:
            del formatted[at]
    return _truncate(
        ", ".join(formatted if len(formatted) == len(shown) else [*formatted, "…"]),
        max(max_chars, 60),
    )


def _format_parameter(param: Param) -> str:
    """Return one parameter. A default that is None, long or not JSON is shown as `?`."""
    if param.required:
        return f"{param.name}: {_format_shape(param.shape)}"
    default = "null" if param.default is shapes.MISSING else _format_json(param.default)
    if default == "null" or len(default) > 40:
        return f"{param.name}?: {_format_shape(shapes.unwrap_optional(param.shape))}"
    return f"{param.name}: {_format_shape(param.shape)} = {default}"


def _format_json(value: object) -> str:
    """Return a value as JSON, without the `json` module, which is slow to import."""
    from tooli.text.jsonable import is_list, is_object, to_jsonable

    warnings: list[str] = []
    value = to_jsonable(value, warnings)
    if warnings or value is None:
        return "null"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if is_list(value):
        return f"[{', '.join(map(_format_json, value))}]"
    if is_object(value):
        members = [f"{_format_json(key)}: {_format_json(part)}" for key, part in value.items()]
        return f"{{{', '.join(members)}}}"
    return str(value).lower()  # true, false or a number


def _format_shape(shape: Shape) -> str:
    """Return the type of a shape in short form."""
    match shape:
        case shapes.Scalar(kind):
            return kind.__name__
        case shapes.PathShape():
            return "path"
        case shapes.Choice():
            return _format_choices(shape_choices(shape))
        case shapes.ListOf(item):
            formatted = _format_shape(item)
            return f"({formatted})[]" if "|" in formatted else f"{formatted}[]"
        case shapes.TupleOf(items):
            return f"[{', '.join(map(_format_shape, items))}]"
        case shapes.Maybe(item):
            return f"{_format_shape(item)}|null"
        case shapes.ParsedText(annotation) | shapes.Structured(annotation):
            return _format_annotation(
                annotation, "object" if isinstance(shape, shapes.Structured) else ""
            )
        case _:
            return "str"


def _format_annotation(annotation: Any, fallback: str) -> str:
    """Return the type of an annotation: the members of a union, or the name of a class."""
    if hasattr(annotation, "__metadata__"):
        return _format_shape(infer_shape(annotation.__origin__))
    parts: tuple[Any, ...] = getattr(annotation, "__args__", ())
    kind = str(getattr(getattr(annotation, "__origin__", annotation), "__name__", "any"))
    if "Union" in type(annotation).__name__:
        return "|".join(
            ["null" if part is type(None) else _format_shape(infer_shape(part)) for part in parts]
        )
    if kind == "Literal":
        return _format_choices(parts)
    if kind.endswith(("Iterator", "Generator")) and parts:
        return _format_shape(shapes.ListOf(infer_shape(parts[0])))
    if kind in ("list", "set", "tuple") and not isinstance(
        infer_shape(annotation), shapes.Structured
    ):
        return _format_shape(infer_shape(annotation))  # a nested list
    return fallback or ("any" if annotation is object else kind.lower())


def shape_choices(shape: Shape) -> tuple[object, ...]:
    """Return the values that a shape allows; an empty tuple if it allows any value."""
    values = shape.values if isinstance(shape, shapes.Choice) else ()
    return tuple([getattr(value, "value", value) for value in values])


def _format_choices(values: tuple[object, ...]) -> str:
    return "|".join(map(_format_json, values[:_MAX_CHOICES])) + (
        "|…" if len(values) > _MAX_CHOICES else ""
    )


def _format_result(tool: Tool) -> str:
    try:
        annotation = return_annotation(tool)
    except Exception:  # the annotation names a type that is imported for type checkers only
        return ""
    is_annotated = annotation not in (shapes.MISSING, None, type(None))
    return f" -> {_format_shape(infer_shape(annotation))}" if is_annotated else ""
