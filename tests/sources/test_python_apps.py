"""Apps in Python files and modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from tooli import Tooli
from tooli.errors import DependencyError, InputError, NotFoundError
from tooli.sources.python_apps import load_python_app, name_after_program, wrap_typer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def test_app_in_a_file(folder: Path) -> None:
    (folder / "one_app.py").write_text("from tooli import Tooli\ncli = other = Tooli('one')\n")
    assert load_python_app("one_app.py")._state.name == "one"
    assert load_python_app(f"{folder / 'one_app.py'}:cli")._state.name == "one"
    with pytest.raises(InputError, match=r"is not an app\. Apps in this module: cli, other"):
        load_python_app("one_app.py:missing")
    with pytest.raises(NotFoundError, match=r"no file 'missing\.py'"):
        load_python_app("missing.py")


def test_app_in_a_module_of_the_current_folder(folder: Path) -> None:
    (folder / "local_app.py").write_text("import typer\nmain = typer.Typer(help='Local.')\n")
    app = load_python_app("local_app:main")
    assert (app._state.name, app._state.description) == ("local-app", "Local.")
    assert app._state.needs_launcher
    for name in ("missing_app", "missing.mod:app", ".relative", "a/b"):
        with pytest.raises(NotFoundError):
            load_python_app(name)


def test_names_of_programs() -> None:
    assert name_after_program(Tooli(), "prog")._state.name == "prog"
    assert name_after_program(Tooli("own"), "prog")._state.name == "own"
    wrapped = name_after_program(typer.Typer(), "prog")
    assert (wrapped._state.name, wrapped._state.reference) == ("prog", ("prog",))
    assert wrap_typer(typer.Typer(name="named"), "prog")._state.name == "named"


UNGUARDED = {
    "from tooli import Tooli\napp = Tooli()\n@app.command()\ndef hi(): ...\napp()\n": "app",
    "import typer\nbasic = typer.Typer()\n@basic.command()\ndef hi(): ...\nbasic()\n": "basic",
    "import typer\ndef hi(): ...\ntyper.run(hi)\n": None,
}


@pytest.mark.parametrize("text", UNGUARDED)
def test_file_that_starts_its_app_without_a_guard(folder: Path, text: str) -> None:
    (folder / "start.py").write_text(text)
    app = load_python_app("start.py")
    assert [tool.name for tool in app.catalog] == ["hi"] and app._state.name == "start"
    name = UNGUARDED[text]
    if name is not None:
        assert [tool.name for tool in load_python_app(f"start.py:{name}").catalog] == ["hi"]


def test_module_that_starts_its_app_without_a_guard(folder: Path) -> None:
    (folder / "start_mod.py").write_text("from tooli import Tooli\napp = Tooli()\napp()\n")
    with pytest.raises(InputError, match="'start_mod' starts its app") as caught:
        load_python_app("start_mod:app")
    assert "__main__" in caught.value.suggestion.fix  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import x y\n", r"bad\.py cannot be loaded: SyntaxError: .*line 1"),
        ("def f():\n    1 / 0\nf()\n", r"ZeroDivisionError: division by zero \(bad\.py:2\)"),
        ("import no_such_package\n", r"'no_such_package' \(bad\.py:1\)"),
        ("from tooli import Tooli\nTooli(colour=1)\n", r"loaded: .*'colour'.*bad\.py:2"),
        ("import json\njson.loads('x')\n", r"JSONDecodeError: .* \(bad\.py:2\)"),
        ("import sys\nsys.exit(3)\n", r"it exits \(3\) while it is imported"),
    ],
)
def test_file_that_fails(folder: Path, text: str, message: str) -> None:
    (folder / "bad.py").write_text(text)
    with pytest.raises(DependencyError, match=message) as caught:
        load_python_app("bad.py")
    assert caught.value.field == "source"
    fix = caught.value.suggestion.fix  # type: ignore[union-attr]
    assert "exe:bad.py" in fix if "exit" in text else "python bad.py" in fix
