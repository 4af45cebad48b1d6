"""The fast conversion agrees with pydantic: same values, same types, same errors.

Every example is one random plain annotation, as a parameter, and many random values for it.
There is one exception: pydantic rejects text with a lone surrogate. File names that are not
valid UTF-8 contain lone surrogates, so tooli accepts them.

    TOOLI_FUZZ_SEED=7 TOOLI_FUZZ_EXAMPLES=2000 pytest tests/lanes/test_fast_convert.py
"""

from __future__ import annotations

import collections
import enum
import math
import pathlib
import types
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pydantic
from annotated_types import Ge, Le
from hypothesis import event, given
from hypothesis import strategies as st
from tests.example_count import example_count
from tests.lanes.generators import (
    FUZZ_SEED,
    Color,
    Lenient,
    Level,
    Mixed,
    Rank,
    fuzz_example_count,
    is_equal,
    run_examples,
)

from tooli import Argument
from tooli.core.tool import MISSING
from tooli.schema import ConversionError
from tooli.schema.convert_values import convert_value
from tooli.schema.tool_reader import read_param

VALUES = 60
EXAMPLES = fuzz_example_count(200)


def test_enough_values_are_compared() -> None:
    assert FUZZ_SEED or VALUES * EXAMPLES >= example_count(10_000)


# ------------------------------------------------------------------ annotations


class Bits(enum.Flag):
    ONE = 1
    TWO = 2


class Empty(enum.Enum):
    """An enum without members, which accepts no value."""


class PathSubclass(type(Path())):  # type: ignore[misc]
    """A subclass of Path."""


_LEAVES: tuple[Any, ...] = (
    *(str, int, float, bool, Path, Color, Level, Rank, Mixed, Lenient, Bits, Empty),
    *(Literal["fast", "slow"], Literal["red"], Literal[1, 2], Literal["1", 1], Literal["a", None]),
    *(type(Path()), Literal[Color.RED], Literal[True, "x"]),
)
_NUMBERS = st.sampled_from([0, 1, 3, -2, 10, 0.5, -1.5])


class AnnotatedCase(NamedTuple):
    """An annotation, and the settings of its Argument(…)."""

    annotation: Any
    settings: dict[str, Any]

    def param(self) -> Any:
        """Return the parameter that tooli reads from the annotation."""
        annotated = Annotated[self.annotation, Argument(**self.settings)]
        return read_param("x", annotated if self.settings else self.annotation, MISSING)

    def adapter(self) -> pydantic.TypeAdapter[Any]:
        """Return the TypeAdapter for the annotation, with the bounds as pydantic constraints."""
        if not self.settings:
            return pydantic.TypeAdapter(self.annotation)
        number = float if "float" in str(self.annotation) else int
        constraints: list[Any] = [
            constraint(self.settings[side])
            for side, constraint in (("min", Ge), ("max", Le))
            if side in self.settings
        ]
        if "clamp" in self.settings:
            constraints = [pydantic.AfterValidator(lambda value: self._clamped(number, value))]
        bounded = Annotated[(number, *constraints)]
        return pydantic.TypeAdapter(_BOUNDED[self.annotation](bounded))

    def is_rejected_by_all(self, locations: list[Any]) -> bool:
        """True if a value is of no member of a union. tooli reports that as one error."""
        is_union = isinstance(self.annotation, types.UnionType)
        return is_union and all(len(location) == 1 for location in locations)

    def _clamped(self, number: type, value: Any) -> Any:
        if not isinstance(value, number):
            raise ValueError("pydantic's int takes an Enum's value as it is")
        low, high = self.settings.get("min"), self.settings.get("max")
        if low is not None and value < low:
            return number(low)
        return number(high) if high is not None and value > high else value


_BOUNDED: dict[Any, Any] = {
    made(number): made
    for number in (int, float)
    for made in (
        lambda leaf: leaf,
        lambda leaf: list[leaf],
        lambda leaf: leaf | None,
        lambda leaf: tuple[leaf, leaf],
        lambda leaf: set[leaf],
    )
}


@st.composite
def annotated_cases(draw: st.DrawFn) -> AnnotatedCase:
    """Draw a plain annotation: a scalar, a collection, a tuple, or an optional one."""
    leaf = draw(st.sampled_from(_LEAVES))
    form = draw(st.sampled_from(("leaf", "leaf", "list", "row", "set", "maybe", "deep", "bound")))
    if form == "bound":
        annotation = draw(st.sampled_from(list(_BOUNDED)))
        bounds = _NUMBERS if "float" in str(annotation) else st.integers(-5, 10)
        sides = draw(st.sampled_from((("min",), ("max",), ("min", "max"))))
        settings = {side: draw(bounds) for side in sides}
        return AnnotatedCase(
            annotation, {**settings, "clamp": True} if draw(st.booleans()) else settings
        )
    if form == "row":
        others = draw(st.lists(st.sampled_from(_LEAVES), max_size=2))
        return AnnotatedCase(tuple[(leaf, *others)], {})  # type: ignore[misc]
    makers: dict[str, Any] = {
        "leaf": lambda: leaf,
        "list": lambda: draw(st.sampled_from((list[leaf], list[leaf] | None))),
        "set": lambda: draw(st.sampled_from((set[leaf], frozenset[leaf], tuple[leaf, ...]))),
        "maybe": lambda: Optional[leaf],  # noqa: UP045  typing's and Python's unions differ
        "deep": lambda: draw(
            st.sampled_from((list[list[leaf]], list[leaf | None], dict[str, leaf], leaf | int))
        ),
    }
    return AnnotatedCase(makers[form](), {})


# ------------------------------------------------------------------ values


class StrSubclass(str):
    """A subclass of str."""


class IntSubclass(int):
    """A subclass of int."""


class FloatSubclass(float):
    """A subclass of float."""


_UNUSUAL_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 7, 10**30, 2**53, 2**53 + 1, -(2**63), 2**1024),
    *(0.0, -0.0, 1.0, 1.5, 2.0, 1e300, 1e18, math.nan, math.inf, -math.inf, 4.5e15),
    *(
        "",
        "1",
        "01",
        " 7",
        "1_0",
        "1.0",
        "1e3",
        "nan",
        "inf",
        "٣",
        "true",
        "True",
        "yes",
        "off",
        "x",
    ),
    *("red", "RED", "Green", "Straße", "fast", "slow", "FAST", "a", "A", "one", "uno", "é", "日本"),
    *(
        b"",
        b"1",
        b"red",
        b"true",
        b"\xff",
        bytearray(b"7"),
        StrSubclass("red"),
        StrSubclass("1"),
        StrSubclass("fast"),
    ),
    *(
        IntSubclass(1),
        IntSubclass(7),
        FloatSubclass(1.0),
        FloatSubclass(0.5),
        Decimal("1"),
        Decimal("1.5"),
        Decimal("NaN"),
        1j,
    ),
    *(
        Path("p"),
        Path(),
        PurePosixPath("p"),
        PathSubclass("h"),
        pathlib.PurePath("q"),
        "a/../b",
        "./x",
        "x/",
    ),
    *(*Color, *Level, *Rank, *Mixed, *Lenient, *Bits, Bits.ONE | Bits.TWO, Color, object, ...),
)
_leaves = st.one_of(
    st.sampled_from(_UNUSUAL_VALUES),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(collections.deque),
        st.dictionaries(st.sampled_from(("a", "1", 1)), inner, max_size=2),
        st.lists(st.sampled_from((1, "1", "red", Color.RED, 2.0)), max_size=3).map(set),
        st.lists(st.sampled_from((1, "1", "red", "fast")), max_size=2).map(frozenset),
    ),
    max_leaves=4,
)


# ------------------------------------------------------------------ the comparison


def compare(case: AnnotatedCase, values: list[Any]) -> None:
    """Assert that tooli and pydantic agree about each value."""
    param, adapter = case.param(), case.adapter()
    for value in values:
        ours = theirs = None
        locations: list[Any] = []
        try:
            theirs = adapter.validate_python(value)
        except pydantic.ValidationError as failure:
            locations = [error["loc"] for error in failure.errors(include_url=False)]
        except TypeError:  # raised by enum.Flag on Python 3.10
            locations = [()]
        event("rejected" if locations else "accepted")
        about = f"{case} and {value!r}: pydantic gives {theirs!r}, or rejects {locations}"
        try:
            ours = convert_value(param, value)
        except ConversionError as failure_of_tooli:
            found = [
                reason.location for reason in (failure_of_tooli, *failure_of_tooli.other_errors)
            ]
            assert locations, f"rejected at {found}: {about}"
            if not case.settings and not (found == [()] and case.is_rejected_by_all(locations)):
                assert found == locations, f"rejected at {found}: {about}"
        else:
            assert not locations and is_equal(ours, theirs), f"accepted as {ours!r}: {about}"


class Example(NamedTuple):
    """An annotation, and values for it."""

    case: AnnotatedCase
    values: list[Any]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self.case))


def test_fast_conversion_agrees_with_pydantic() -> None:
    seen = 0

    def check_example(example: Example) -> None:
        nonlocal seen
        seen += len(example.values)
        compare(*example)

    values = st.lists(_values, min_size=VALUES, max_size=VALUES)
    run_examples(
        EXAMPLES, "fits", given(st.builds(Example, annotated_cases(), values)), check_example
    )
    assert seen >= EXAMPLES * VALUES
