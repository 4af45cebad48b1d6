"""Apps in Python files and modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from tooli import Tooli
from tooli.errors import InputError, NotFoundError
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
