"""Plain values are converted without pydantic, and with the same results as by Typer."""

from __future__ import annotations

import os
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
import typer

from tooli.cli import typer_conversion
from tooli.cli.typer_conversion import PlainConversion, use_plain_conversion
from tooli.schema import NeedsFallback

pytestmark = pytest.mark.skipif(
    not hasattr(typer.core, "RuntimeParam"), reason="this Typer converts without pydantic"
)


class Color(str, Enum):
    RED = "red"
    GREEN = "Green"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Size(int):
    """A subclass, which pydantic does not return unchanged."""


TYPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "str": (str, {}),
    "int": (int, {}),
    "int with bounds": (int, {"min": 0, "max": 10}),
    "int with float bounds": (int, {"min": 0.5}),
    "clamped int": (int, {"min": 0, "max": 10, "clamp": True}),
    "float": (float, {}),
    "float with bounds": (float, {"min": 0.5, "max": 2}),
    "bool": (bool, {}),
    "path": (Path, {}),
    "existing path": (Path, {"exists": True, "dir_okay": False, "resolve_path": True}),
    "writable path": (Path, {"writable": True, "file_okay": False}),
    "path or dash": (Path, {"allow_dash": True}),
    "path as text": (Path, {"path_type": str}),
    "enum": (Color, {}),
    "enum without case": (Color, {"case_sensitive": False}),
    "enum of numbers": (Level, {}),
    "literal": (Literal["a", "b", 3], {}),
    "list of text": (list[str], {}),
    "list of numbers": (list[int], {"min": 1}),
    "list of paths": (list[Path], {}),
    "list of enums": (list[Color], {}),
    "tuple": (tuple[str, int, float], {}),
    "bytes": (bytes, {}),
    "parser": (Size, {"parser": lambda text: Size(int(text) * 2)}),
}
SINGLE_VALUES: list[Any] = [
    *(
        None,
        "",
        " ",
        "a",
        "A",
        "red",
        "green",
        "Green",
        "RED",
        "-",
        "--",
        "b",
        "3",
        "Ünï",
        "\udcff",
    ),
    *("0", "1", "7", "11", "-1", "-0", "007", "1_0", " 7", "7 ", "+7", "1.0", "1.", ".5", "1e3"),
    *("9" * 18, "9" * 19, "-" + "9" * 30, "nan", "inf", "true", "yes", "٣", "a\0b", "1.25", "2.0"),
    *("file.txt", "folder", "folder/", "missing", "file.txt/", "./file.txt"),
    *(0, 1, 3, 10, 11, 1 << 60, True, False, 0.5, 1.0, 2.5, float("nan"), float("inf"), Size(3)),
    *(Color.RED, Level.LOW, Path("file.txt"), Path("missing"), b"red", b"\xff", object),
]
VALUES = [
    *SINGLE_VALUES,
    (),
    [],
    ("a",),
    ("1", "2"),
    ["1", "x"],
    ("a", "1", "1.5"),
    ("a", "1"),
    (1,),
]


def make_param(annotation: Any, settings: dict[str, Any]) -> Any:
    """Return Typer's parameter for an option of a function."""
    option = typer.Option(None, "--value", **settings)

    def command(value: Any = option) -> None: ...

    command.__annotations__ = {"value": annotation}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return typer.main.get_command(app).params[0]


def convert(param: Any, value: object) -> tuple[str, object]:
    """Return the converted value with its type, or the error."""
    context = typer.Context(typer.core.TyperCommand("x"))
    try:
        converted = param.process_value(context, value)
    except Exception as error:
        return type(error).__name__, str(error)
    items = converted if isinstance(converted, (list, tuple)) else ()
    return f"{type(converted)} {[type(item) for item in items]}", repr(converted)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", TYPES)
def test_every_value_is_converted_as_by_typer(name: str) -> None:
    for value in VALUES:
        expected, actual = make_param(*TYPES[name]), make_param(*TYPES[name])
        use_plain_conversion([actual])
        assert convert(actual, value) == convert(expected, value), repr(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("str", "Ünï"), ("int", "7"), ("int", 7), ("int with bounds", "10"), ("float", "1.5")),
        *(("float", 3), ("path", "missing"), ("existing path", "file.txt"), ("path", Path("x"))),
        *(("enum", "red"), ("enum", Color.RED), ("enum without case", "GREEN"), ("literal", "a")),
        *(("list of numbers", ("1", "2")), ("list of text", []), ("tuple", ("a", "1", "2"))),
        *(("parser", None), ("bool", None), ("list of paths", None)),
    ],
    ids=repr,
)
def test_plain_value_needs_no_adapter(name: str, value: object) -> None:
    param = make_param(*TYPES[name])
    use_plain_conversion([param])
    convert(param, value)
    assert isinstance(param._runtime_param, PlainConversion)


@pytest.mark.parametrize(
    ("name", "value"),
    [("int", "x"), ("int with bounds", "11"), ("parser", "2"), ("bool", "yes"), ("path", "a\0b")],
)
def test_other_values_are_left_to_typer(name: str, value: object) -> None:
    param = make_param(*TYPES[name])
    use_plain_conversion([param])
    convert(param, value)
    assert not isinstance(param._runtime_param, PlainConversion)


def test_unknown_internals_leave_everything_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typer_conversion, "_internals", None)
    param = make_param(int, {})
    use_plain_conversion([param])
    assert param._runtime_param is None


def test_file_is_opened_by_typer() -> None:
    param = make_param(typer.FileText, {})
    use_plain_conversion([param])
    context = typer.Context(typer.core.TyperCommand("x"))
    with param.process_value(context, "file.txt") as file:
        assert file.name == "file.txt"
    assert type(param._runtime_param).__name__ == "FileRuntimeParam"


def test_a_tuple_with_a_file_is_left_to_typer() -> None:
    param = make_param(tuple[str, typer.FileText], {})
    use_plain_conversion([param])
    assert param._runtime_param is None


def test_parameters_of_other_libraries_are_not_changed() -> None:
    class Foreign:
        _runtime_param = None

    foreign: Any = Foreign()
    use_plain_conversion([foreign, object()])  # type: ignore[list-item]
    assert foreign._runtime_param is None


APP = """
import sys
import typer
from pathlib import Path
from tooli import Tooli

app = Tooli()

@app.callback()
def main(ctx: typer.Context, level: int = 1) -> None: ...

@app.command()
def show(name: str, times: int = 2, where: Path = Path("."), tag: list[str] = []):
    print(name * times, where, tag)
    print("pydantic" in sys.modules)

@app.command()
def other(): ...

app()
"""


def test_plain_command_on_the_typer_path_does_not_import_pydantic(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(APP)
    argv = ["--level", "3", "show", "ab", "--where", "x", "--tag", "y"]
    done = subprocess.run(
        [sys.executable, "-I", str(script), *argv],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLI_OUTPUT": "text"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "abab x ['y']\nFalse\n"


def test_errors_of_typer_have_no_context_of_tooli() -> None:
    """A traceback shows the exceptions that are raised while another one is handled."""

    def fail(text: str) -> int:
        raise LookupError(text)

    context = typer.Context(typer.core.TyperCommand("x"))
    for param, expected in ((make_param(int, {}), "BadParameter"), (parsed(fail), "LookupError")):
        use_plain_conversion([param])
        with pytest.raises(Exception) as caught:
            param.process_value(context, "x")
        assert type(caught.value).__name__ == expected
        chain = [caught.value]
        while chain[-1].__context__ is not None:
            chain.append(chain[-1].__context__)
        assert not [error for error in chain if isinstance(error, NeedsFallback)]


def parsed(parser: Any) -> Any:
    """Return a parameter with a parser."""
    return make_param(int, {"parser": parser})
