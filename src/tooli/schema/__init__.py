"""Read functions into tools, convert values, and write JSON Schema.

This file converts text from a command line to the values of parameters. The code is in
`__init__.py` because every ordinary call needs it, and each additional file adds 0.1 ms to the
start. Only unambiguous text is converted here: the canonical text of a number, the exact name of a
choice. Other text raises NeedsFallback, and Typer or pydantic converts it. Values from code or JSON
are converted in `convert_values.py`.
"""

from __future__ import annotations

from tooli.core import find_loaded
from tooli.core.tool import (
    MAX_PROBLEMS,
    Choice,
    ConversionError,
    Handle,
    ListOf,
    ParsedText,
    PathShape,
    Scalar,
    TupleOf,
    check_path_size,
    is_structured,
    merge_errors,
    quote,
    unwrap_optional,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.core.tool import Param, Shape


class NeedsFallback(Exception):  # noqa: N818  not an error: another converter decides
    """The value is neither clearly valid nor clearly invalid: Typer or pydantic must decide."""


class RawText:
    """The text of one parameter on a command line.

    `fallback` converts what this module cannot. `dotted` holds the values of dotted flags, such as
    `--user.name Ada`, by path.
    """

    __slots__ = ("dotted", "fallback", "is_cli_text", "texts")

    def __init__(
        self,
        texts: Sequence[str],
        fallback: Callable[[Param, RawText], Any] | None = None,
        dotted: Mapping[str, Sequence[str]] | None = None,
        *,
        is_cli_text: bool = True,
    ) -> None:
        self.texts = texts
        self.fallback = fallback
        self.dotted = dotted
        self.is_cli_text = is_cli_text  # False: from an environment variable

    def __repr__(self) -> str:
        return f"RawText({list(self.texts)!r})"


class Converted:
    """A value that Typer has converted already."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def convert_text(param: Param, raw: RawText, warnings: list[str] | None = None) -> object:
    """Convert the text of a parameter, with Typer if needed. Raises ConversionError.

    Fields of objects that are ignored are added to `warnings`.
    """
    reject_placeholder(param, raw.texts)
    try:
        if param.option_kwargs and not param.option_kwargs.keys().isdisjoint(
            ("parser", "callback")
        ):
            raise NeedsFallback
        converted = convert_unambiguous_text(param, raw, warnings)
    except NeedsFallback:
        if raw.fallback is None:
            raise
        converted = raw.fallback(param, raw)
    if has_pydantic_metadata(param):
        from tooli.schema.pydantic_bridge import validate

        converted = validate(param.annotation, converted)
    return apply_constraints(param, converted)


def reject_placeholder(param: Param, value: object) -> None:
    """Raise ConversionError for the placeholder in a suggestion, such as `<name>` for `name`.

    A caller that runs a suggestion as it is must not get an effect.
    """
    found = find_placeholder(value, param.name)
    if found is not None and not any(
        [getattr(constraint, "accepts_any_text", False) for constraint in param.constraints]
    ):
        raise ConversionError(f"{found!r} is a placeholder: replace it with a value")


def find_placeholder(value: Any, name: str, depth: int = 0) -> str | None:
    """Return the first text in a value that is the name of its parameter or field in brackets."""
    kind = value.__class__
    if kind is str:
        return value if value[:1] == "<" and value == f"<{name}>" else None
    if kind in (int, float, bool) or depth >= _MAX_PLACEHOLDER_DEPTH:
        return None
    if kind in _CONTAINERS:
        items = value.items() if kind is dict else [(name, item) for item in value]
        for key, item in items:
            found = find_placeholder(item, key, depth + 1)
            if found is not None:
                return found
    elif kind is bytes:
        return find_placeholder(value.decode(errors="replace"), name, depth + 1)
    elif hasattr(kind, "__fspath__"):  # Typer has converted the text, and may have resolved it
        path = value.__fspath__()
        last = path.rpartition("/")[2] if path.__class__ is str else path
        return find_placeholder(last, name, depth + 1)
    return None


_CONTAINERS = (list, tuple, dict, set, frozenset)


_MAX_PLACEHOLDER_DEPTH = 20


def apply_constraints(param: Param, value: Any) -> Any:
    """Return a converted value, checked by the constraints in the parameter's annotation."""
    for constraint in param.constraints:
        constraint.tooli_check(value)
    return value


# ------------------------------------------------------------------ text


def convert_unambiguous_text(
    param: Param, raw: RawText, warnings: list[str] | None = None
) -> object:
    """Convert text that every version of Typer converts alike.

    Raises NeedsFallback for other text, and ConversionError for invalid text.
    """
    shape = unwrap_optional(param.shape)
    texts = raw.texts
    if raw.dotted is not None or is_structured(shape):
        from tooli.schema.object_text import parse_structured

        return parse_structured(
            param, texts, raw.dotted or {}, lambda value: reject_placeholder(param, value), warnings
        )
    if isinstance(shape, Handle):
        return shape.parse(texts[-1], param, raw.is_cli_text)
    convert_item = _convert_one if raw.is_cli_text else _convert_variable
    if isinstance(shape, ListOf):
        return shape.container(convert_each(convert_item, [shape.item] * len(texts), texts, param))
    if isinstance(shape, TupleOf) and len(texts) == len(shape.items):
        return tuple(convert_each(convert_item, shape.items, texts, param))
    if isinstance(shape, TupleOf):
        raise NeedsFallback
    return _convert_one(shape, texts[-1], param)


def convert_each(
    convert_item: Callable[[Shape, Any, Param], Any],
    shapes: Sequence[Shape],
    values: Sequence[Any],
    param: Param,
) -> list[Any]:
    """Convert each value.

    The error lists the invalid values with their index. The conversion stops once there are more
    than `MAX_PROBLEMS` errors.
    """
    converted: list[Any] = []
    errors: list[ConversionError] = []
    for i, item in enumerate(values):
        try:
            converted.append(convert_item(shapes[i], item, param))
        except ConversionError as error:
            for reason in (error, *error.other_errors):
                reason.location = (i, *reason.location)
                errors.append(reason)
            if len(errors) > MAX_PROBLEMS:
                raise merge_errors(errors, has_more=True) from None
    if errors:
        raise merge_errors(errors)
    return converted


def _convert_one(shape: Shape, text: str, param: Param) -> object:
    if isinstance(shape, Scalar):
        return _SCALAR_CONVERTERS[shape.type](text, param)
    if isinstance(shape, PathShape):
        return parse_path(shape, text, param)
    if isinstance(shape, Choice):
        return match_choice(shape, text, param)
    if isinstance(shape, ParsedText):
        from tooli.schema.pydantic_bridge import parse_text

        if "formats" not in param.option_kwargs and not _is_portable_text(shape.annotation, text):
            raise NeedsFallback
        return parse_text(shape.annotation, text, param.option_kwargs)
    if isinstance(shape, Handle):
        return shape.parse(text, param, True)
    raise NeedsFallback


def _convert_variable(shape: Shape, text: str, param: Param) -> object:
    """Convert one item of an environment variable. A secret in it is the value, not a location."""
    if isinstance(shape, Handle):
        return shape.parse(text, param, False)
    return _convert_one(shape, text, param)


_PORTABLE_FORMATS = {
    "UUID": ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",),
    "datetime": ("0000-00-00", "0000-00-00T00:00:00", "0000-00-00 00:00:00"),
}


def _is_portable_text(annotation: Any, text: str) -> bool:
    """True if all versions of Typer parse the text alike.

    They parse some UUIDs and datetimes differently.
    """
    if annotation.__class__ is not type or annotation.__module__ not in ("uuid", "datetime"):
        return True
    patterns = _PORTABLE_FORMATS.get(annotation.__name__)
    if patterns is None or any([_matches_format(text, pattern) for pattern in patterns]):
        return True
    return annotation.__name__ == "UUID" and not _is_uuid(annotation, text)  # none accepts it


def _is_uuid(annotation: Any, text: str) -> bool:
    """True if a version of Typer may accept the text as a UUID."""
    try:
        annotation(text)
    except ValueError:
        return False
    return True


def _matches_format(text: str, pattern: str) -> bool:
    kinds = {"0": "0123456789", "x": "0123456789abcdefABCDEF"}
    return len(text) == len(pattern) and all(
        [char in kinds.get(kind, kind) for char, kind in zip(text, pattern, strict=True)]
    )


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NeedsFallback from None


def _convert_str(text: str, param: Param) -> str:
    if not text.isascii():
        _check_encodable(text)
    return text


def parse_path(shape: PathShape, text: str, param: Param) -> Any:
    """Return the path that a text names, checked as `Option(exists=…, …)` says.

    Some versions of Typer check the path, others check its text. Raises NeedsFallback if the
    results can differ: for an empty text, and for the name of a file followed by a slash.
    """
    import os

    if not text.isascii():
        _check_encodable(text)
    path = shape.type(text)
    if not text or (text.endswith(("/", "/.")) and os.path.exists(path) > os.path.isdir(path)):
        raise NeedsFallback
    return convert_path(path, param)


def _convert_int(text: str, param: Param) -> int:
    return convert_number(parse_int(text), param)


def parse_int(text: str) -> int:
    """Return the whole number that a text is; raises NeedsFallback if it is not canonical."""
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()):
        if text.isascii() and text.isalpha():
            raise ConversionError(f"{quote(text)} is not a valid integer")
        raise NeedsFallback
    if len(digits) > 18 or (digits[0] == "0" and text != "0"):
        raise NeedsFallback
    return int(text)


def _convert_float(text: str, param: Param) -> float:
    return convert_number(parse_float(text), param)


def parse_float(text: str) -> float:
    """Return the number that a text is; raises NeedsFallback if it is not canonical."""
    digits = text[1:] if text[:1] == "-" else text
    whole, dot, part = digits.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(digits) <= 15) or (
        dot and not (part.isascii() and part.isdigit())
    ):
        if text.isascii() and text.isalpha() and text.lower() not in ("nan", "inf", "infinity"):
            raise ConversionError(f"{quote(text)} is not a valid number")
        raise NeedsFallback
    return float(text)


def _convert_bool(text: str, param: Param) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise NeedsFallback


_SCALAR_CONVERTERS: dict[type, Callable[[str, Param], Any]] = {
    str: _convert_str,
    int: _convert_int,
    float: _convert_float,
    bool: _convert_bool,
}


def match_choice(shape: Choice, text: str, param: Param) -> Any:
    """Return the choice that a text names."""
    ignore_case = not param.option_kwargs.get("case_sensitive", True)
    wanted = text.casefold() if ignore_case else text
    matching = [
        choice
        for choice, label in zip(shape.values, shape.labels, strict=True)
        if (label.casefold() if ignore_case else label) == wanted
    ]
    if len(matching) == 1:
        return matching[0]
    if matching:  # several values have the same text
        raise NeedsFallback
    raise invalid_choice(shape, text)


def invalid_choice(shape: Choice, text: str) -> ConversionError:
    """Return the error for a text that is none of the choices."""
    from tooli.similar_names import closest_match

    listing = ", ".join(map(repr, shape.labels))
    return ConversionError(
        f"{quote(text)} is not one of {listing}", suggested_value=closest_match(text, shape.labels)
    )


def has_pydantic_metadata(param: Param) -> bool:
    """True if the annotation is an `Annotated` with metadata for pydantic."""
    return hasattr(param.annotation, "__metadata__")


# ------------------------------------------------------------------ bounds


def convert_number(value: Any, param: Param) -> Any:
    """Return a number within `min` and `max`.

    Raises NeedsFallback where versions of Typer differ.
    """
    kwargs = param.option_kwargs
    if kwargs and ("min" in kwargs or "max" in kwargs):
        allowed_types = (
            (int,) if type(value) is int else (float,) if "clamp" in kwargs else (int, float)
        )
        bounds = [b for b in (kwargs.get("min"), kwargs.get("max")) if b is not None]
        if value != value or any([type(bound) not in allowed_types for bound in bounds]):
            raise NeedsFallback
        return apply_bounds(value, param)
    return value


def apply_bounds(value: Any, param: Param) -> Any:
    """Return a number within `min` and `max`: clamped if `clamp` is set, else checked."""
    low, high = param.option_kwargs.get("min"), param.option_kwargs.get("max")
    clamp = param.option_kwargs.get("clamp")
    if low is not None and not value >= low and (value == value or not clamp):
        if clamp:
            return type(value)(low)
        raise ConversionError(
            f"{quote(value)} is less than {low}, the smallest allowed", suggested_value=low
        )
    if high is not None and not value <= high and (value == value or not clamp):
        if clamp:
            return type(value)(high)
        raise ConversionError(
            f"{quote(value)} is more than {high}, the largest allowed", suggested_value=high
        )
    return value


def convert_path(path: Any, param: Param) -> Any:
    """Return a path, checked and resolved as Option(exists=…, resolve_path=…, …) says."""
    import os

    check_path_size(str(path))
    keyword = param.option_kwargs.get
    if str(path) == "-" and keyword("allow_dash") and keyword("file_okay", True):
        return path  # stdin
    is_upload = hasattr(path, "tooli_location")  # the caller did not name the path
    target = os.path.realpath(path) if keyword("resolve_path") and not is_upload else path
    result = path.__class__(target) if target is not path else path
    check_named_file = find_loaded("tooli.core.caller_files", "check_named_file")
    try:
        if check_named_file is not None and not is_upload:  # otherwise, no call has rules
            check_named_file(str(path), param.name)
        mode = os.stat(target).st_mode
    except (OSError, ValueError):
        if keyword("exists"):
            raise ConversionError(f"{quote(str(path))} does not exist") from None
        return result
    kind = mode & 0o170000
    if kind == 0o100000 and not keyword("file_okay", True):
        raise ConversionError(f"{quote(str(path))} is a file, not a directory")
    if kind == 0o040000 and not keyword("dir_okay", True):
        raise ConversionError(f"{quote(str(path))} is a directory, not a file")
    if keyword("readable", True) and not os.access(target, os.R_OK):
        raise ConversionError(f"{quote(str(path))} is not readable")
    if keyword("writable") and not os.access(target, os.W_OK):
        raise ConversionError(f"{quote(str(path))} is not writable")
    return result
