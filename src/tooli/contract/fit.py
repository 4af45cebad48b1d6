"""Fit what a caller gave to what a parameter wants.

Two kinds of things arrive: `Words` from a command line, and values from code or
JSON. Plain shapes are fitted here, and only where the answer is beyond doubt: the
canonical text of a number, a value of just the right class. In doubt the real
engine decides: Typer for words (it owns the command line), pydantic for values.
"""

from __future__ import annotations

from tooli.contract.tool import (
    Choice,
    Foreign,
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
    kind = type(value)
    if kind is Given:
        value = value.value
        return _refine(param, value) if _is_refined(param) else _rehome(param, value)
    if kind is Words:
        try:
            if param.settings and not param.settings.keys().isdisjoint(("parser", "callback")):
                raise Doubt
            fitted = fit_words(param, value)
        except Doubt:
            if value.judge is None:
                return fit_value(param, value.texts[-1] if not param.many else list(value.texts))
            fitted = value.judge(param, value)
        return _refine(param, fitted) if _is_refined(param) else fitted
    return fit_value(param, value)


def fit_default(param: Param) -> Any:
    """The default, looked at as Typer looks at it: converted and checked like a given value."""
    factory = _factory(param)
    default = factory() if factory is not None else param.default
    shape = plain(param.shape)
    if default is None and factory is not None and isinstance(shape, ListOf):
        return shape.into()
    if default is None or isinstance(shape, Foreign):
        return default
    try:
        try:
            return _default(shape, default, param)
        except Doubt:
            return fit_value(param, default)
    except Misfit as misfit:  # nobody gave its parts, so none of them is named
        misfit.at, misfit.others = (), ()
        raise


def is_doubtful(param: Param) -> bool:
    """Whether only Typer can say what it makes of the default of a plain shape."""
    shape = plain(param.shape)
    if param.default is None or (param.settled and not isinstance(shape, Choice)):
        return False
    parts = shape.items if isinstance(shape, TupleOf) else (getattr(shape, "item", shape),)
    light = all([isinstance(part, (Scalar, PathShape, Choice)) for part in parts])
    if not light or _is_refined(param) or _factory(param) is not None:
        return False
    try:
        _default(shape, param.default, param)
    except Doubt:
        return True
    except Misfit:
        pass
    return False


def _factory(param: Param) -> Callable[[], Any] | None:
    return param.default if callable(param.default) else param.settings.get("default_factory")


def _default(shape: Shape, default: Any, param: Param) -> Any:
    if _is_refined(param):
        raise Doubt
    if isinstance(shape, ListOf) and type(default) in (list, tuple, shape.into):
        return shape.into([_default(shape.item, item, param) for item in default])
    if isinstance(shape, TupleOf) and type(default) is tuple and len(default) == len(shape.items):
        return tuple([_default(s, v, param) for s, v in zip(shape.items, default, strict=True)])
    if isinstance(shape, PathShape) and type(default) is str:
        return _path(shape, default, param)
    if isinstance(shape, Choice):
        is_member = hasattr(type(default), "_member_map_")
        return _choose(shape, str(default.value if is_member else default), param)
    if isinstance(shape, Scalar) and shape.type is str and type(default) is not bytes:
        return str(default)
    return _value(shape, default, param)


# ------------------------------------------------------------------ words


def fit_words(param: Param, words: Words) -> Any:
    """The value that words stand for; raises Misfit or Doubt."""
    shape = plain(param.shape)
    texts = words.texts
    if words.dotted is not None or (isinstance(shape, (Structured, ListOf)) and _has_parts(shape)):
        from tooli.contract.models import read_parts

        return read_parts(param, texts, words.dotted or {})
    if isinstance(shape, ListOf):
        return shape.into(_each_word([shape.item] * len(texts), texts, param))
    if isinstance(shape, TupleOf) and len(texts) == len(shape.items):
        return tuple(_each_word(shape.items, texts, param))
    if isinstance(shape, TupleOf):
        raise Doubt
    return _word(shape, texts[-1], param)


def _each_word(shapes: Sequence[Shape], texts: Sequence[str], param: Param) -> list[Any]:
    """The values of several words; everything that is wrong with any of them."""
    values: list[Any] = []
    wrong: list[Misfit] = []
    for i, text in enumerate(texts):
        try:
            values.append(_word(shapes[i], text, param))
        except Misfit as misfit:
            misfit.at = (i, *misfit.at)
            wrong.append(misfit)
    if wrong:
        wrong[0].others = wrong[1:]
        raise wrong[0]
    return values


def _has_parts(shape: Shape) -> bool:
    return isinstance(shape, Structured) or (
        isinstance(shape, ListOf) and isinstance(shape.item, Structured)
    )


def _word(shape: Shape, text: str, param: Param) -> Any:
    if isinstance(shape, Scalar):
        return _SCALARS[shape.type](text, param)
    if isinstance(shape, PathShape):
        return _path(shape, text, param)
    if isinstance(shape, Choice):
        return _choose(shape, text, param)
    if isinstance(shape, Text):
        from tooli.contract.models import read_text

        return read_text(shape.annotation, text, param.settings)
    raise Doubt


def _encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Doubt from None


def _string(text: str, param: Param) -> str:
    if not text.isascii():
        _encodable(text)
    return text


def _path(shape: PathShape, text: str, param: Param) -> Any:
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


def _choose(shape: Choice, text: str, param: Param) -> Any:
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
    raise _not_one_of(shape, text)


def _not_one_of(shape: Choice, text: str) -> Misfit:
    from tooli.errors import nearest

    words = [str(c.value if shape.enum is not None else c) for c in shape.values]
    listing = ", ".join([repr(word) for word in words])
    return Misfit(f"{text!r} is not one of {listing}", meant=nearest(text, words))


# ------------------------------------------------------------------ values


def fit_value(param: Param, value: Any) -> Any:
    """A value from code or JSON, fitted; raises Misfit. The author's own checks are run, too."""
    parser = param.settings.get("parser")
    if parser is not None:
        fitted = _authors(parser, value) if isinstance(value, str) else value
    elif isinstance(param.shape, Foreign):
        fitted = value
    else:
        fitted = _fit_to_shape(param, value)
    callback = param.settings.get("callback")
    if callback is not None:
        from tooli.contract.models import call_back

        return _authors(call_back(callback), fitted)
    return fitted


def _authors(function: Callable[[Any], Any], value: Any) -> Any:
    """What the author's own parser or callback makes of a value; its complaint is a Misfit."""
    try:
        return function(value)
    except (ValueError, TypeError) as refused:
        raise Misfit(str(refused) or type(refused).__name__) from refused
    except Exception as refused:
        if hasattr(refused, "format_message"):  # one of Typer's
            raise Misfit(getattr(refused, "message", str(refused))) from refused
        raise


def _fit_to_shape(param: Param, value: Any) -> Any:
    shape = plain(param.shape)
    if value is None and param.shape is not shape:
        return None
    try:
        if _is_refined(param):
            raise Doubt
        return _value(shape, value, param)
    except Doubt:
        from tooli.contract.models import validate

        try:
            valid = validate(param.annotation, value)
        except Misfit:
            if isinstance(shape, Choice) and isinstance(value, (str, int)):
                raise _not_one_of(shape, str(value)) from None
            raise
        return _recheck(shape, valid, param)


def _value(shape: Shape, value: Any, param: Param) -> Any:
    kind = type(value)
    if isinstance(shape, Scalar):
        if kind is shape.type:
            return check_number(value, param) if kind in (int, float) else value
        if shape.type is float and kind is int and -(2**53) <= value <= 2**53:
            return check_number(float(value), param)
    elif isinstance(shape, PathShape):
        if kind is str or isinstance(value, shape.type):
            return check_path(shape.type(value) if kind is str else value, param)
    elif isinstance(shape, Choice):
        if shape.enum is not None and isinstance(value, shape.enum):
            return value
        if kind is str:
            return _choose_value(shape, value, param)
    elif isinstance(shape, ListOf) and kind is list and shape.into is list:
        return [*_each([shape.item] * len(value), value, param)]
    elif isinstance(shape, TupleOf) and kind is tuple and len(value) == len(shape.items):
        return tuple(_each(shape.items, value, param))
    raise Doubt


def _each(shapes: Sequence[Shape], values: Sequence[Any], param: Param) -> Sequence[Any]:
    """Many values, each fitted; all that do not fit are named, with their places."""
    fitted: list[Any] = []
    wrong: list[Misfit] = []
    for i, value in enumerate(values):
        try:
            fitted.append(_value(shapes[i], value, param))
        except Misfit as misfit:
            misfit.at = (i, *misfit.at)
            wrong.append(misfit)
    if wrong:
        wrong[0].others = wrong[1:]
        raise wrong[0]
    return fitted


def _choose_value(shape: Choice, value: str, param: Param) -> Any:
    values = [c.value for c in shape.values] if shape.enum is not None else shape.values
    for choice, word in zip(shape.values, values, strict=True):
        if word == value:
            return choice
    if any([type(v) is not str for v in values]) or _looks_again(shape.enum):
        raise Doubt
    return _choose(shape, value, param)


def _looks_again(enum: Any) -> bool:
    """Whether an Enum finds members by other values than theirs."""
    return enum is not None and enum._missing_.__func__.__module__ != "enum"


def _is_refined(param: Param) -> bool:
    return hasattr(param.annotation, "__metadata__")


def _refine(param: Param, value: Any) -> Any:
    from tooli.contract.models import validate

    return validate(param.annotation, value)


def _rehome(param: Param, value: Any) -> Any:
    """Typer gathers lists; a set or tuple parameter gets its own kind."""
    shape = plain(param.shape)
    if isinstance(shape, ListOf) and shape.into is not list and isinstance(value, (list, tuple)):
        items: Any = value
        return shape.into(items)
    return value


def _recheck(shape: Shape, value: Any, param: Param) -> Any:
    """Typer's own bounds hold for what pydantic accepted, too."""
    if not param.settings or value is None:
        return value
    if isinstance(shape, ListOf):
        return shape.into([_recheck(shape.item, item, param) for item in value])
    if isinstance(shape, TupleOf):
        return tuple([_recheck(s, v, param) for s, v in zip(shape.items, value, strict=True)])
    if isinstance(shape, PathShape):
        return check_path(value, param)
    if isinstance(shape, Scalar) and shape.type in (int, float):
        return _within(value, param)
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
        return _within(value, param)
    return value


def _within(value: Any, param: Param) -> Any:
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
