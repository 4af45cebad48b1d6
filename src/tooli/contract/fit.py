"""Fit what a caller gave to what a parameter wants.

Two kinds of things arrive: `Words` from a command line, and values from code or
JSON. Plain shapes are fitted here, and only where the answer is beyond doubt: the
canonical text of a number, a value of just the right class. In doubt the real
engine decides: Typer for words (it owns the command line), pydantic for values.
"""

from __future__ import annotations

from tooli.contract.tool import (
    Choice,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    Structured,
    Text,
    TupleOf,
    plain,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.contract.tool import Param, Shape


class Doubt(Exception):  # noqa: N818  it is no error: the real engine decides
    """Neither clearly right nor clearly wrong."""


class Misfit(Exception):  # noqa: N818  the word for a value that does not fit
    """What is wrong with a value: a message, where in the value, and what was probably meant."""

    def __init__(
        self, message: str, at: tuple[Any, ...] = (), meant: Any = None, code: str = "E1003"
    ) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.meant = meant
        self.code = code
        self.others: Sequence[Misfit] = ()


class Words:
    """Text from a command line for one parameter, and who decides in doubt."""

    __slots__ = ("dotted", "judge", "texts", "typed")

    def __init__(
        self,
        texts: Sequence[str],
        judge: Callable[[Param, Words], Any] | None = None,
        dotted: Mapping[str, Sequence[str]] | None = None,
        *,
        typed: bool = True,
    ) -> None:
        self.texts = texts
        self.judge = judge
        self.dotted = dotted
        self.typed = typed  # on the line, not in the environment

    def __repr__(self) -> str:
        return f"Words({list(self.texts)!r})"


class Given:
    """A value that Typer has fitted already."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def fit(param: Param, value: Any) -> Any:
    """The value as the function wants it; raises Misfit."""
    fitted = _fit(param, value)
    for mark in param.marks:
        mark.tooli_check(fitted)
    return fitted


def _fit(param: Param, value: Any) -> Any:
    if isinstance(value, Given):
        value = value.value
        return _refine(param, value) if is_refined(param) else _rehome(param, value)
    if isinstance(value, Words):
        try:
            if param.settings and not param.settings.keys().isdisjoint(("parser", "callback")):
                raise Doubt
            fitted = fit_words(param, value)
        except Doubt:
            if value.judge is None:
                texts = value.texts
                return _fit_value(param, list(texts) if param.many else texts[-1])
            fitted = value.judge(param, value)
        return _refine(param, fitted) if is_refined(param) else fitted
    return _fit_value(param, value)


def _fit_value(param: Param, value: Any) -> Any:
    from tooli.contract.values import fit_value

    return fit_value(param, value)


# ------------------------------------------------------------------ words


def fit_words(param: Param, words: Words) -> Any:
    """The value that words stand for; raises Misfit or Doubt."""
    shape = plain(param.shape)
    texts = words.texts
    if words.dotted is not None or (isinstance(shape, (Structured, ListOf)) and _has_parts(shape)):
        from tooli.contract.models import read_parts

        return read_parts(param, texts, words.dotted or {})
    if isinstance(shape, Handle):
        return shape.take(texts[-1], param, words.typed)
    if isinstance(shape, ListOf):
        return shape.into(each(_word, [shape.item] * len(texts), texts, param))
    if isinstance(shape, TupleOf) and len(texts) == len(shape.items):
        return tuple(each(_word, shape.items, texts, param))
    if isinstance(shape, TupleOf):
        raise Doubt
    return _word(shape, texts[-1], param)


def each(
    one: Callable[[Shape, Any, Param], Any],
    shapes: Sequence[Shape],
    given: Sequence[Any],
    param: Param,
) -> list[Any]:
    """Many words or values, each fitted by `one`; all that do not fit are named, with places."""
    fitted: list[Any] = []
    wrong: list[Misfit] = []
    for i, item in enumerate(given):
        try:
            fitted.append(one(shapes[i], item, param))
        except Misfit as misfit:
            misfit.at = (i, *misfit.at)
            wrong.append(misfit)
    if wrong:
        wrong[0].others = wrong[1:]
        raise wrong[0]
    return fitted


def _has_parts(shape: Shape) -> bool:
    return isinstance(shape, Structured) or (
        isinstance(shape, ListOf) and isinstance(shape.item, Structured)
    )


def _word(shape: Shape, text: str, param: Param) -> Any:
    if isinstance(shape, Scalar):
        return _SCALARS[shape.type](text, param)
    if isinstance(shape, PathShape):
        return fit_path(shape, text, param)
    if isinstance(shape, Choice):
        return choose(shape, text, param)
    if isinstance(shape, Text):
        from tooli.contract.models import read_text

        if "formats" not in param.settings and not _is_usual(shape.annotation, text):
            raise Doubt
        return read_text(shape.annotation, text, param.settings)
    if isinstance(shape, Handle):
        return shape.take(text, param, True)
    raise Doubt


_USUAL = {
    "UUID": ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",),
    "datetime": ("0000-00-00", "0000-00-00T00:00:00", "0000-00-00 00:00:00"),
}


def _is_usual(annotation: Any, text: str) -> bool:
    """Whether every Typer reads the text alike; older ones have their own UUIDs and datetimes."""
    if annotation.__class__ is not type or annotation.__module__ not in ("uuid", "datetime"):
        return True
    looks = _USUAL.get(annotation.__name__)
    return looks is None or any([_has_look(text, look) for look in looks])


def _has_look(text: str, look: str) -> bool:
    kinds = {"0": "0123456789", "x": "0123456789abcdefABCDEF"}
    return len(text) == len(look) and all(
        [char in kinds.get(kind, kind) for char, kind in zip(text, look, strict=True)]
    )


def _encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Doubt from None


def _string(text: str, param: Param) -> str:
    if not text.isascii():
        _encodable(text)
    return text


def fit_path(shape: PathShape, text: str, param: Param) -> Any:
    """A path that means the same as its text; Typer's versions check one or the other."""
    import os

    if not text.isascii():
        _encodable(text)
    path = shape.type(text)
    if not text or (text.endswith(("/", "/.")) and os.path.exists(path) > os.path.isdir(path)):
        raise Doubt
    return check_path(path, param)


def _whole(text: str, param: Param) -> int:
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()):
        if text.isascii() and text.isalpha():
            raise Misfit(f"{text!r} is not a valid integer")
        raise Doubt
    if len(digits) > 18 or (digits[0] == "0" and text != "0"):
        raise Doubt
    return check_number(int(text), param)


def _number(text: str, param: Param) -> float:
    digits = text[1:] if text[:1] == "-" else text
    whole, dot, part = digits.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(digits) <= 15) or (
        dot and not (part.isascii() and part.isdigit())
    ):
        if text.isascii() and text.isalpha() and text.lower() not in ("nan", "inf", "infinity"):
            raise Misfit(f"{text!r} is not a valid number")
        raise Doubt
    return check_number(float(text), param)


def _truth(text: str, param: Param) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise Doubt


_SCALARS: dict[type, Callable[[str, Param], Any]] = {
    str: _string,
    int: _whole,
    float: _number,
    bool: _truth,
}


def choose(shape: Choice, text: str, param: Param) -> Any:
    """The choice that a text names."""
    fold = not param.settings.get("case_sensitive", True)
    wanted = text.casefold() if fold else text
    words = [str(c.value if shape.enum is not None else c) for c in shape.values]
    found = [
        choice
        for choice, word in zip(shape.values, words, strict=True)
        if (word.casefold() if fold else word) == wanted
    ]
    if len(found) == 1:
        return found[0]
    if found:  # values that are typed alike
        raise Doubt
    raise not_one_of(shape, text)


def not_one_of(shape: Choice, text: str) -> Misfit:
    """What is wrong with a text that names none of the choices."""
    from tooli.errors import nearest

    words = [str(c.value if shape.enum is not None else c) for c in shape.values]
    listing = ", ".join([repr(word) for word in words])
    return Misfit(f"{text!r} is not one of {listing}", meant=nearest(text, words))


def is_refined(param: Param) -> bool:
    """Whether pydantic has more to say: metadata of its own stands in Annotated."""
    return hasattr(param.annotation, "__metadata__")


def _refine(param: Param, value: Any) -> Any:
    from tooli.contract.models import validate

    return validate(param.annotation, value)


def _rehome(param: Param, value: Any) -> Any:
    """Typer gathers lists; a set or tuple parameter gets its own kind."""
    shape = plain(param.shape)
    if isinstance(shape, ListOf) and shape.into is not list and value.__class__ in (list, tuple):
        return shape.into(value)
    return value


# ------------------------------------------------------------------ bounds


def check_number(value: Any, param: Param) -> Any:
    """The number within `min` and `max`, or clamped to them; in doubt where Typers differ."""
    settings = param.settings
    if settings and ("min" in settings or "max" in settings):
        usual = (int,) if type(value) is int else (float,) if "clamp" in settings else (int, float)
        bounds = [b for b in (settings.get("min"), settings.get("max")) if b is not None]
        if value != value or any([type(bound) not in usual for bound in bounds]):
            raise Doubt
        return within(value, param)
    return value


def within(value: Any, param: Param) -> Any:
    """The number between `min` and `max`, or clamped to them."""
    low, high = param.settings.get("min"), param.settings.get("max")
    clamp = param.settings.get("clamp")
    if low is not None and not value >= low and (value == value or not clamp):
        if clamp:
            return type(value)(low)
        raise Misfit(f"{value!r} is less than {low}, the smallest allowed", meant=low)
    if high is not None and not value <= high and (value == value or not clamp):
        if clamp:
            return type(value)(high)
        raise Misfit(f"{value!r} is more than {high}, the largest allowed", meant=high)
    return value


def check_path(path: Any, param: Param) -> Any:
    """The path, if it is of the kind that Option(exists=…, dir_okay=…, …) asks for."""
    import os

    said = param.settings.get
    target = os.path.realpath(path) if said("resolve_path") else path
    made = path.__class__(target) if target is not path else path
    try:
        mode = os.stat(target).st_mode
    except (OSError, ValueError):
        if said("exists"):
            raise Misfit(f"{str(path)!r} does not exist", code="E1003") from None
        return made
    kind = mode & 0o170000
    if kind == 0o100000 and not said("file_okay", True):
        raise Misfit(f"{str(path)!r} is a file, not a directory")
    if kind == 0o040000 and not said("dir_okay", True):
        raise Misfit(f"{str(path)!r} is a directory, not a file")
    if said("readable", True) and not os.access(target, os.R_OK):
        raise Misfit(f"{str(path)!r} is not readable")
    if said("writable") and not os.access(target, os.W_OK):
        raise Misfit(f"{str(path)!r} is not writable")
    return made
