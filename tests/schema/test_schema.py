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
from tests.stable_ids import stable_id

from tooli import Argument, Option
from tooli.core.tool import MAX_PROBLEMS, Scalar
from tooli.schema import (
    ConversionError,
    NeedsFallback,
    RawText,
    convert_each,
    convert_unambiguous_text,
    find_placeholder,
)


def convert(annotation: Any, *texts: str) -> Any:
    return convert_unambiguous_text(param(annotation), RawText(texts))


class TestText:
    @pytest.mark.parametrize(
        ("annotation", "texts", "expected"),
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
        ids=stable_id,
    )
    def test_unambiguous_text_is_converted(self, annotation, texts, expected) -> None:
        found = convert(annotation, *texts)
        assert found == expected
        assert type(found) is type(expected)

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
    def test_ambiguous_text_needs_a_fallback(self, annotation, text) -> None:
        with pytest.raises(NeedsFallback):
            convert(annotation, text)

    @pytest.mark.parametrize(
        ("annotation", "text", "message", "suggested"),
        [
            (int, "abc", "'abc' is not a valid integer", None),
            (float, "abc", "'abc' is not a valid number", None),
            (Colour, "rde", "'rde' is not one of 'red', 'blue'", "red"),
            (Literal["a"], "zzz", "'zzz' is not one of 'a'", None),
            (Annotated[int, Argument(min=3)], "1", "less than 3", 3),
            (Annotated[int, Argument(max=3)], "5", "more than 3", 3),
        ],
    )
    def test_invalid_text_is_rejected(self, annotation, text, message, suggested) -> None:
        with pytest.raises(ConversionError, match=message) as caught:
            convert(annotation, text)
        assert caught.value.suggested_value == suggested

    def test_choice_ignores_case_only_if_declared(self) -> None:
        annotation = Annotated[Colour, Option(case_sensitive=False)]
        assert convert(annotation, "RED") is Colour.RED
        with pytest.raises(ConversionError):
            convert(Colour, "RED")

    def test_number_is_clamped(self) -> None:
        annotation = Annotated[int, Argument(min=3, max=9, clamp=True)]
        assert [convert(annotation, text) for text in ("1", "5", "50")] == [3, 5, 9]


class EqualText(enum.Enum):
    NUMBER = 1
    WORD = "1"


def test_enum_values_with_equal_text_need_a_fallback() -> None:
    with pytest.raises(NeedsFallback):
        convert(EqualText, "1")


def test_bound_of_another_type_needs_a_fallback() -> None:
    with pytest.raises(NeedsFallback):
        convert(Annotated[int, Argument(min=1.5)], "2")


class TestPaths:
    def check(self, path, **kwargs) -> Any:
        return value(Annotated[pathlib.Path, Option(**kwargs)], path)

    def test_missing_path_is_rejected_if_it_must_exist(self, tmp_path) -> None:
        assert self.check(tmp_path, exists=True) == tmp_path
        with pytest.raises(ConversionError, match="does not exist"):
            self.check(tmp_path / "no", exists=True)
        assert self.check(tmp_path / "no") == tmp_path / "no"

    def test_path_with_nul_does_not_exist(self) -> None:
        with pytest.raises(ConversionError, match="does not exist"):
            self.check("a\0b", exists=True)

    def test_path_must_be_a_file_or_directory_as_declared(self, tmp_path) -> None:
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(ConversionError, match="is a file, not a directory"):
            self.check(file, file_okay=False)
        with pytest.raises(ConversionError, match="is a directory, not a file"):
            self.check(tmp_path, dir_okay=False)
        assert self.check(file, dir_okay=False) == file

    def test_unreadable_or_unwritable_path_is_rejected(self, tmp_path, monkeypatch) -> None:
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

    def test_path_is_resolved_if_declared(self, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "real").touch()
        (tmp_path / "link").symlink_to("real")
        found = self.check("link", resolve_path=True)
        assert found == tmp_path.resolve() / "real"
        assert isinstance(found, pathlib.Path)

    def test_path_is_checked_after_validation_by_pydantic(self, tmp_path) -> None:
        below = pydantic.AfterValidator(lambda path: path / "no")
        with pytest.raises(ConversionError, match="does not exist"):
            value(Annotated[pathlib.Path, below, Option(exists=True)], tmp_path)


def test_attributes_of_a_conversion_error() -> None:
    error = ConversionError("wrong", ("a", 0), suggested_value="b", code="E1008")
    assert (error.message, error.location, error.suggested_value, error.code) == (
        "wrong",
        ("a", 0),
        "b",
        "E1008",
    )
    assert not error.other_errors


class TestManyErrors:
    def test_conversion_stops_at_the_limit(self) -> None:
        converted: list[str] = []

        def convert(shape: Any, text: str, param: Any) -> None:
            converted.append(text)
            raise ConversionError("no")

        with pytest.raises(ConversionError) as caught:
            convert_each(convert, [Scalar(int)] * 1000, ["x"] * 1000, param(int))
        assert len(converted) == MAX_PROBLEMS + 1
        assert caught.value.has_more

    def test_nested_errors_keep_their_location(self) -> None:
        def convert(shape: Any, value: list[str], param: Any) -> Any:
            if isinstance(value, list):
                return convert_each(convert, [shape] * len(value), value, param)
            raise ConversionError("no")

        int_param = param(int)
        with pytest.raises(ConversionError) as caught:
            convert_each(convert, [Scalar(int)] * 2, [["a", "b"], ["c"]], int_param)
        locations = [error.location for error in (caught.value, *caught.value.other_errors)]
        assert locations == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("text", ["<b>", "/srv/files/<b>"])
def test_placeholder_of_a_resolved_path_is_found(text: str) -> None:
    """Typer resolves the text of a path with `resolve_path=True`."""
    assert find_placeholder(pathlib.Path(text), "b") == "<b>"
    assert find_placeholder(pathlib.Path(text), "c") is None
    assert find_placeholder(pathlib.Path("/srv/<b>/file"), "b") is None
