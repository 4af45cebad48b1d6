"""Convert text of a command line; ambiguous text is left to Typer or pydantic."""
# ruff: noqa: UP045  both ways to spell an optional are read

import datetime as dt
import enum
import os
import pathlib
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
import typer
from tests.schema.reading import Colour, Level, Size, param, value
from tests.shown import shown

from tooli import Argument, Option
from tooli.schema.convert import (
    ConversionError,
    NeedsFallback,
    RawText,
    convert_unambiguous_text,
)


def words(annotation: Any, *texts: str) -> Any:
    return convert_unambiguous_text(param(annotation), RawText(texts))


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


class Alike(enum.Enum):
    NUMBER = 1
    WORD = "1"


def test_enum_values_with_equal_text_need_a_fallback() -> None:
    with pytest.raises(NeedsFallback):
        words(Alike, "1")


def test_bound_of_another_type_needs_a_fallback() -> None:
    with pytest.raises(NeedsFallback):
        words(Annotated[int, Argument(min=1.5)], "2")


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
