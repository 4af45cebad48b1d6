"""Convert values of every kind, and defaults, to the values of parameters."""
# ruff: noqa: UP045  Optional[X] is tested as well

import datetime as dt
import enum
import pathlib
from typing import Annotated, Literal, Optional

import pydantic
import pytest
import typer
from tests.schema.reading import Colour, Level, Size, param, value
from tests.stable_ids import stable_id

from tooli import Option
from tooli.core.tool import MISSING
from tooli.schema import ConversionError, Converted, RawText
from tooli.schema.convert_values import (
    convert_argument,
    convert_default,
    convert_value,
    default_needs_typer,
)


class TestRawText:
    """Text of a command line that the fast path does not convert."""

    def test_fallback_of_the_surface_converts_ambiguous_text(self) -> None:
        assert convert_argument(param(int), RawText(["+1"], lambda param, raw: 42)) == 42

    def test_pydantic_converts_ambiguous_text_without_a_fallback(self) -> None:
        assert convert_argument(param(int), RawText(["+1"])) == 1
        assert convert_argument(param(list[int]), RawText(["+1", " 2"])) == [1, 2]
        with pytest.raises(ConversionError):
            convert_argument(param(int), RawText(["1.5"]))

    def test_last_text_of_a_single_option_is_used(self) -> None:
        assert convert_argument(param(int), RawText(["+1", "+2"])) == 2

    def test_pydantic_metadata_is_checked(self) -> None:
        positive = param(Annotated[int, pydantic.Field(gt=3)])
        assert convert_argument(positive, RawText(["4"])) == 4
        with pytest.raises(ConversionError, match="not more than 3"):
            convert_argument(positive, RawText(["3"]))


class TestConverted:
    """Values that Typer has converted."""

    def test_already_converted_value_is_unchanged(self) -> None:
        assert value(int, Converted("anything")) == "anything"

    def test_list_becomes_the_declared_container(self) -> None:
        assert value(set[int], Converted([1, 1])) == {1}
        assert value(tuple[int, ...], Converted([1])) == (1,)
        assert value(set[int], Converted(None)) is None

    def test_pydantic_metadata_is_checked(self) -> None:
        with pytest.raises(ConversionError):
            value(Annotated[int, pydantic.Field(gt=3)], Converted(1))


class TestValues:
    @pytest.mark.parametrize(
        ("annotation", "given", "expected"),
        [
            (str, "a", "a"),
            (int, 3, 3),
            (int, "3", 3),
            (int, True, 1),
            (float, 3, 3.0),
            (float, 2**60, float(2**60)),
            (float, "1.5", 1.5),
            (bool, "yes", True),
            (pathlib.Path, "a", pathlib.Path("a")),
            (pathlib.Path, pathlib.Path("a"), pathlib.Path("a")),
            (Colour, "red", Colour.RED),
            (Colour, Colour.RED, Colour.RED),
            (Level, 1, Level.LOW),
            (Literal["a", "b"], "b", "b"),
            (list[int], [1, "2"], [1, 2]),
            (list[int], (1, 2), [1, 2]),
            (set[int], [1, 1], {1}),
            (tuple[int, str], [1, "a"], (1, "a")),
            (Optional[int], None, None),
            (Optional[int], 3, 3),
            (Size, {"width": "3"}, Size(width=3)),
            (dt.date, "2024-01-02", dt.date(2024, 1, 2)),
        ],
        ids=stable_id,
    )
    def test_valid_value_is_converted(self, annotation, given, expected) -> None:
        found = value(annotation, given)
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("annotation", "given"),
        [
            (str, 3),
            (int, "x"),
            (int, None),
            (int, 1.5),
            (Colour, "green"),
            (Level, "low"),
            (Literal["a"], 3),
            (list[int], "12"),
            (list[int], [None]),
            (pathlib.Path, 3),
            (Size, {}),
        ],
        ids=stable_id,
    )
    def test_invalid_value_is_rejected(self, annotation, given) -> None:
        with pytest.raises(ConversionError):
            value(annotation, given)

    @pytest.mark.parametrize(
        ("annotation", "good", "bad"),
        [
            (int, "3", "1"),
            (float, 3, 1),
            (list[int], [3], [3, 1]),
            (list[int], ("3",), ("1",)),
            (Optional[int], None, 1),
        ],
        ids=stable_id,
    )
    def test_bounds_apply_after_every_conversion(self, annotation, good, bad) -> None:
        bounded = Annotated[annotation, Option(min=2)]
        value(bounded, good)
        with pytest.raises(ConversionError, match="less than 2"):
            value(bounded, bad)

    def test_value_of_an_option_without_bounds_is_converted(self) -> None:
        assert value(Annotated[dt.date, Option(help="x")], "2024-01-02") == dt.date(2024, 1, 2)

    def test_parser_converts_text_only(self) -> None:
        parsed = param(Annotated[complex, Option(parser=complex)])
        assert convert_value(parsed, "1j") == 1j
        assert convert_value(parsed, 1j) == 1j

    def test_type_that_only_typer_converts_is_unchanged(self) -> None:
        thing = object()
        assert value(typer.FileText, thing) is thing


class TestDefaults:
    @pytest.mark.parametrize(
        ("annotation", "default", "expected"),
        [
            (int, None, None),
            (float, 3, 3.0),
            (Colour, "red", Colour.RED),
            (pathlib.Path, "a", pathlib.Path("a")),
            (set[int], [1, 1], {1}),
            (list[Colour], ("red",), [Colour.RED]),
            (typer.FileText, "x", "x"),
            (Annotated[int, Option(default_factory=lambda: 7)], MISSING, 7),
        ],
        ids=stable_id,
    )
    def test_default_is_converted_like_a_value(self, annotation, default, expected) -> None:
        assert convert_default(param(annotation, default)) == expected

    @pytest.mark.parametrize(
        ("annotation", "default", "expected"),
        [
            (tuple[Colour, int], ("red", 3), (Colour.RED, 3)),
            (list[int], lambda: [1], [1]),
            (list[int], lambda: None, []),
            (int, lambda: None, None),
        ],
        ids=stable_id,
    )
    def test_default_factory_is_called_and_its_value_converted(
        self, annotation, default, expected
    ) -> None:
        assert convert_default(param(annotation, default)) == expected

    @pytest.mark.parametrize(
        ("annotation", "default", "needs_typer"),
        [
            (int, None, False),
            (int, 3, False),
            (int, "3", True),
            (int, lambda: "3", False),
            (list[int], [1], False),
            (list[int], {1: 2}, True),
            (tuple[int, int], (1, 2), False),
            (tuple[int, int], [1, 2], True),
            (Colour, Colour.RED, False),
            (Colour, "green", False),
            (dt.date, "x", False),
            (Annotated[int, pydantic.Field(gt=1)], "3", False),
        ],
        ids=stable_id,
    )
    def test_default_of_another_type_needs_typer(self, annotation, default, needs_typer) -> None:
        assert default_needs_typer(param(annotation, default)) is needs_typer

    def test_error_of_a_default_has_no_location(self) -> None:
        with pytest.raises(ConversionError) as caught:
            convert_default(param(list[Colour], ["green", "grey"]))
        assert (caught.value.location, list(caught.value.other_errors)) == ((), [])

    def test_invalid_default_is_rejected(self) -> None:
        with pytest.raises(ConversionError):
            convert_default(param(int, "x"))


class TestEnums:
    class EqualText(enum.Enum):
        NUMBER = 1
        WORD = "1"

    class Forgiving(enum.Enum):
        A = "a"

        @classmethod
        def _missing_(cls, value):
            return cls.A

    def test_text_matches_the_text_member_first(self) -> None:
        assert value(self.EqualText, "1") is self.EqualText.WORD

    def test_custom_missing_method_is_called(self) -> None:
        assert value(self.Forgiving, "anything") is self.Forgiving.A


def test_every_invalid_item_is_reported() -> None:
    with pytest.raises(ConversionError) as caught:
        value(list[Colour], ["red", "rde", "bleu"])
    reasons = [caught.value, *caught.value.other_errors]
    assert [(r.location, r.suggested_value) for r in reasons] == [((1,), "red"), ((2,), "blue")]
    assert value(tuple[Colour, int], ("red", 1)) == (Colour.RED, 1)


def test_bounds_apply_to_every_tuple_item() -> None:
    assert value(Annotated[tuple[float, int], Option(min=1)], ["2", 3]) == (2.0, 3)
    with pytest.raises(ConversionError, match="less than"):
        value(Annotated[tuple[float, int], Option(min=1)], ["2", 0])


class TestAuthorFunctions:
    """Parsers and callbacks of Option(…)."""

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (ValueError("bad value"), "bad value"),
            (TypeError(), "TypeError"),
            (typer.BadParameter("not this one"), "not this one"),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("role", ["parser", "callback"])
    def test_error_becomes_a_conversion_error(
        self, error: Exception, message: str, role: str
    ) -> None:
        def fail(value: str) -> str:
            raise error

        with pytest.raises(ConversionError) as caught:
            convert_value(param(Annotated[str, Option(**{role: fail})]), "x")
        assert caught.value.message == message
        assert caught.value.__cause__ is error

    def test_other_errors_are_raised_unchanged(self) -> None:
        def fail(value: str) -> str:
            raise LookupError("x")

        with pytest.raises(LookupError):
            convert_value(param(Annotated[str, Option(parser=fail)]), "x")

    def test_callback_receives_the_converted_value(self) -> None:
        doubled = param(Annotated[int, Option(callback=lambda value: value * 2)])
        assert convert_value(doubled, "4") == 8

    def test_callback_applies_to_converted_values_of_typer_only_once(self) -> None:
        doubled = param(Annotated[int, Option(callback=lambda value: value * 2)])
        assert convert_argument(doubled, Converted(8)) == 8


def test_largest_exact_int_is_converted_to_float() -> None:
    assert value(float, 2**53) == float(2**53)
    assert value(float, -(2**53)) == -float(2**53)


def test_bool_becomes_an_int_within_bounds() -> None:
    assert value(Annotated[int, Option(min=0)], True) == 1


def test_invalid_choice_suggests_the_nearest_value() -> None:
    with pytest.raises(ConversionError, match="'blu' is not one of 'red', 'blue'") as caught:
        value(Colour, "blu")
    assert caught.value.suggested_value == "blue"


def test_tuple_of_another_length_is_rejected() -> None:
    with pytest.raises(ConversionError):
        value(tuple[int, str], (1, "a", 2))
