"""Fitting: words and values to parameters; clear cases here, doubtful ones to the real engine."""
# ruff: noqa: UP045  both ways to spell an optional are read

import datetime as dt
import enum
import os
import pathlib
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
import typer
from tests.shown import shown

from tooli import Argument, Option
from tooli.core.tool import MISSING
from tooli.schema.convert import (
    ConversionError,
    Converted,
    NeedsFallback,
    RawText,
    convert_unambiguous_text,
)
from tooli.schema.convert_values import (
    convert_argument,
    convert_default,
    convert_value,
    default_needs_typer,
)
from tooli.schema.tool_reader import read_param


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Size(pydantic.BaseModel):
    width: int


def param(annotation: Any, default: Any = MISSING):
    return read_param("x", annotation, default)


def words(annotation: Any, *texts: str) -> Any:
    return convert_unambiguous_text(param(annotation), RawText(texts))


def value(annotation: Any, given: Any) -> Any:
    return convert_argument(param(annotation), given)


class TestWords:
    @pytest.mark.parametrize(
        ("annotation", "texts", "wanted"),
        [
            (str, ["a"], "a"),
            (str, ["ü"], "ü"),
            (int, ["12"], 12),
            (int, ["-3"], -3),
            (int, ["0"], 0),
            (int, ["1", "2"], 2),
            (float, ["1.5"], 1.5),
            (float, ["-2"], -2.0),
            (bool, ["true"], True),
            (bool, ["false"], False),
            (pathlib.Path, ["a/ü"], pathlib.Path("a/ü")),
            (Colour, ["red"], Colour.RED),
            (Level, ["2"], Level.HIGH),
            (Literal["a", "b"], ["b"], "b"),
            (list[int], ["1", "2"], [1, 2]),
            (set[int], ["1", "1"], {1}),
            (tuple[int, ...], ["1"], (1,)),
            (tuple[int, str], ["1", "a"], (1, "a")),
            (Optional[int], ["4"], 4),
            (dt.date, ["2024-01-02"], dt.date(2024, 1, 2)),
            (list[dt.date], ["2024-01-02"], [dt.date(2024, 1, 2)]),
            (Size, ['{"width": 3}'], Size(width=3)),
            (list[Size], ['{"width": 3}'], [Size(width=3)]),
        ],
        ids=shown,
    )
    def test_clear(self, annotation, texts, wanted) -> None:
        found = words(annotation, *texts)
        assert found == wanted
        assert type(found) is type(wanted)

    @pytest.mark.parametrize(
        ("annotation", "text"),
        [
            *[(int, text) for text in ("", "-", "+1", "007", "1_000", " 1", "1.0", "１", "9" * 19)],
            *[(float, text) for text in ("", ".5", "1.", "nan", "inf", "1e3", "1_0", "1" * 16)],
            *[(bool, text) for text in ("yes", "1", "True")],
            (str, "\udcff"),
            (pathlib.Path, "\udcff"),
            (typer.FileText, "x"),
        ],
    )
    def test_doubtful(self, annotation, text) -> None:
        with pytest.raises(NeedsFallback):
            words(annotation, text)

    @pytest.mark.parametrize(
        ("annotation", "text", "message", "meant"),
        [
            (int, "abc", "'abc' is not a valid integer", None),
            (float, "abc", "'abc' is not a valid number", None),
            (Colour, "rde", "'rde' is not one of 'red', 'blue'", "red"),
            (Literal["a"], "zzz", "'zzz' is not one of 'a'", None),
            (Annotated[int, Argument(min=3)], "1", "less than 3", 3),
            (Annotated[int, Argument(max=3)], "5", "more than 3", 3),
        ],
    )
    def test_wrong(self, annotation, text, message, meant) -> None:
        with pytest.raises(ConversionError, match=message) as caught:
            words(annotation, text)
        assert caught.value.suggested_value == meant

    def test_case_may_not_matter(self) -> None:
        annotation = Annotated[Colour, Option(case_sensitive=False)]
        assert words(annotation, "RED") is Colour.RED
        with pytest.raises(ConversionError):
            words(Colour, "RED")

    def test_clamped(self) -> None:
        annotation = Annotated[int, Argument(min=3, max=9, clamp=True)]
        assert [words(annotation, text) for text in ("1", "5", "50")] == [3, 5, 9]

    def test_the_judge_decides_in_doubt(self) -> None:
        assert convert_argument(param(int), RawText(["+1"], lambda param, words: 42)) == 42

    def test_without_a_judge_pydantic_does(self) -> None:
        assert convert_argument(param(int), RawText(["+1"])) == 1
        assert convert_argument(param(list[int]), RawText(["+1", " 2"])) == [1, 2]
        with pytest.raises(ConversionError):
            convert_argument(param(int), RawText(["1.5"]))

    def test_refined_words_are_checked_by_pydantic(self) -> None:
        refined = param(Annotated[int, pydantic.Field(gt=3)])
        assert convert_argument(refined, RawText(["4"])) == 4
        with pytest.raises(ConversionError, match="greater than 3"):
            convert_argument(refined, RawText(["3"]))


class TestGiven:
    """What Typer has fitted already."""

    def test_is_taken_as_it_is(self) -> None:
        assert value(int, Converted("anything")) == "anything"

    def test_lists_become_what_the_parameter_wants(self) -> None:
        assert value(set[int], Converted([1, 1])) == {1}
        assert value(tuple[int, ...], Converted([1])) == (1,)
        assert value(set[int], Converted(None)) is None

    def test_refined_is_checked(self) -> None:
        with pytest.raises(ConversionError):
            value(Annotated[int, pydantic.Field(gt=3)], Converted(1))


class TestValues:
    @pytest.mark.parametrize(
        ("annotation", "given", "wanted"),
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
        ids=shown,
    )
    def test_fits(self, annotation, given, wanted) -> None:
        found = value(annotation, given)
        assert found == wanted
        assert type(found) is type(wanted)

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
        ids=shown,
    )
    def test_does_not_fit(self, annotation, given) -> None:
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
        ids=shown,
    )
    def test_bounds_hold_for_every_converter(self, annotation, good, bad) -> None:
        bounded = Annotated[annotation, Option(min=2)]
        value(bounded, good)
        with pytest.raises(ConversionError, match="less than 2"):
            value(bounded, bad)

    def test_settings_that_bound_nothing(self) -> None:
        assert value(Annotated[dt.date, Option(help="x")], "2024-01-02") == dt.date(2024, 1, 2)

    def test_a_parser_reads_text_and_leaves_the_rest(self) -> None:
        parsed = param(Annotated[complex, Option(parser=complex)])
        assert convert_value(parsed, "1j") == 1j
        assert convert_value(parsed, 1j) == 1j

    def test_what_only_typer_knows_is_left_alone(self) -> None:
        thing = object()
        assert value(typer.FileText, thing) is thing


class TestDefaults:
    @pytest.mark.parametrize(
        ("annotation", "default", "wanted"),
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
        ids=shown,
    )
    def test_are_looked_at_like_given_values(self, annotation, default, wanted) -> None:
        assert convert_default(param(annotation, default)) == wanted

    @pytest.mark.parametrize(
        ("annotation", "default", "wanted"),
        [
            (tuple[Colour, int], ("red", 3), (Colour.RED, 3)),
            (list[int], lambda: [1], [1]),
            (list[int], lambda: None, []),
            (int, lambda: None, None),
        ],
        ids=shown,
    )
    def test_that_are_made(self, annotation, default, wanted) -> None:
        assert convert_default(param(annotation, default)) == wanted

    @pytest.mark.parametrize(
        ("annotation", "default", "doubtful"),
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
        ids=shown,
    )
    def test_that_only_typer_can_judge(self, annotation, default, doubtful) -> None:
        assert default_needs_typer(param(annotation, default)) is doubtful

    def test_that_are_wrong_name_no_part(self) -> None:
        with pytest.raises(ConversionError) as caught:
            convert_default(param(list[Colour], ["green", "grey"]))
        assert (caught.value.location, list(caught.value.other_errors)) == ((), [])

    def test_may_be_wrong(self) -> None:
        with pytest.raises(ConversionError):
            convert_default(param(int, "x"))


class TestOddEnums:
    class Alike(enum.Enum):
        NUMBER = 1
        WORD = "1"

    class Forgiving(enum.Enum):
        A = "a"

        @classmethod
        def _missing_(cls, value):
            return cls.A

    def test_members_that_are_typed_alike(self) -> None:
        with pytest.raises(NeedsFallback):
            words(self.Alike, "1")
        assert value(self.Alike, "1") is self.Alike.WORD

    def test_an_enum_that_looks_again_is_asked(self) -> None:
        assert value(self.Forgiving, "anything") is self.Forgiving.A


def test_all_wrong_items_are_named() -> None:
    with pytest.raises(ConversionError) as caught:
        value(list[Colour], ["red", "rde", "bleu"])
    reasons = [caught.value, *caught.value.other_errors]
    assert [(r.location, r.suggested_value) for r in reasons] == [((1,), "red"), ((2,), "blue")]
    assert value(tuple[Colour, int], ("red", 1)) == (Colour.RED, 1)


def test_bounds_of_another_kind_are_typers() -> None:
    with pytest.raises(NeedsFallback):
        words(Annotated[int, Argument(min=1.5)], "2")
    assert value(Annotated[tuple[float, int], Option(min=1)], ["2", 3]) == (2.0, 3)
    with pytest.raises(ConversionError, match="less than"):
        value(Annotated[tuple[float, int], Option(min=1)], ["2", 0])


class TestPaths:
    def check(self, path, **settings) -> Any:
        return value(Annotated[pathlib.Path, Option(**settings)], path)

    def test_must_exist(self, tmp_path) -> None:
        assert self.check(tmp_path, exists=True) == tmp_path
        with pytest.raises(ConversionError, match="does not exist"):
            self.check(tmp_path / "no", exists=True)
        assert self.check(tmp_path / "no") == tmp_path / "no"

    def test_a_name_that_cannot_be_one(self) -> None:
        with pytest.raises(ConversionError, match="does not exist"):
            self.check("a\0b", exists=True)

    def test_file_or_directory(self, tmp_path) -> None:
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(ConversionError, match="is a file, not a directory"):
            self.check(file, file_okay=False)
        with pytest.raises(ConversionError, match="is a directory, not a file"):
            self.check(tmp_path, dir_okay=False)
        assert self.check(file, dir_okay=False) == file

    def test_access(self, tmp_path, monkeypatch) -> None:
        asked: list[int] = []

        def access(path, mode):
            asked.append(mode)
            return False

        monkeypatch.setattr(os, "access", access)
        with pytest.raises(ConversionError, match="is not readable"):
            self.check(tmp_path, exists=True)
        with pytest.raises(ConversionError, match="is not writable"):
            self.check(tmp_path, readable=False, writable=True)
        assert self.check(tmp_path, readable=False) == tmp_path
        assert asked == [os.R_OK, os.W_OK]

    def test_resolved(self, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "real").touch()
        (tmp_path / "link").symlink_to("real")
        found = self.check("link", resolve_path=True)
        assert found == tmp_path.resolve() / "real"
        assert isinstance(found, pathlib.Path)

    def test_settings_hold_for_what_pydantic_made(self, tmp_path) -> None:
        below = pydantic.AfterValidator(lambda path: path / "no")
        with pytest.raises(ConversionError, match="does not exist"):
            value(Annotated[pathlib.Path, below, Option(exists=True)], tmp_path)


def test_a_misfit_knows_where_and_what() -> None:
    misfit = ConversionError("wrong", ("a", 0), suggested_value="b", code="E1008")
    assert (misfit.message, misfit.location, misfit.suggested_value, misfit.code) == (
        "wrong",
        ("a", 0),
        "b",
        "E1008",
    )
    assert not misfit.other_errors
