"""Typer's help loads only the parts of rich that it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
{before}
import typer
from tooli import Tooli

app = Tooli("demo", rich_markup_mode={markup!r})

@app.command()
def show(count: int = 1):
    '''Show *something*.'''
    raise ValueError("not shown")

@app.command()
def other(): ...

try:
    app()
finally:
    from typer import rich_utils
    loaded = [name for name in ("rich.markdown", "rich.traceback") if name in sys.modules]
    sys.stderr.write(f"loaded {{loaded}}\\n")
    {after}
"""


def run(
    folder: Path, *argv: str, markup: str = "rich", before: str = "", after: str = ""
) -> tuple[str, str]:
    """Run the app with Typer's messages; return stdout and stderr."""
    script = folder / "app.py"
    script.write_text(SCRIPT.format(markup=markup, before=before, after=after))
    done = subprocess.run(
        [sys.executable, "-I", str(script), *argv],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TOOLI_OUTPUT": "text"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("argv", [("--help",), ("show", "--help"), ("--nosuch",), ("show", "x")])
def test_help_and_errors_load_no_markdown_parser(argv: tuple[str, ...], tmp_path: Path) -> None:
    out, err = run(tmp_path, *argv)
    assert "Usage:" in out + err
    assert err.endswith("loaded []\n")


def test_markdown_is_loaded_for_markdown(tmp_path: Path) -> None:
    out, err = run(
        tmp_path,
        *("show", "--help"),
        markup="markdown",
        after="import rich.markdown as m; assert rich_utils.Markdown is m.Markdown",
    )
    assert "Show something." in out
    assert err == "loaded ['rich.markdown']\n"


def test_traceback_is_loaded_for_an_exception(tmp_path: Path) -> None:
    _, err = run(tmp_path, "show")
    assert "Traceback (most recent call last)" in err
    assert "ValueError: not shown" in err


def test_modules_that_are_loaded_already_are_used(tmp_path: Path) -> None:
    before = "import rich.markdown, rich.traceback"
    after = "assert rich_utils.Markdown is sys.modules['rich.markdown'].Markdown"
    out, err = run(tmp_path, "--help", before=before, after=after)
    assert "Usage:" in out
    assert err == "loaded ['rich.markdown', 'rich.traceback']\n"


def test_import_of_rich_by_the_app_gets_the_real_classes(tmp_path: Path) -> None:
    after = (
        "from rich.markdown import Markdown; from rich.traceback import install, Traceback; "
        "mine = Markdown('x'); assert isinstance(mine, rich_utils.Markdown); "
        "assert issubclass(Traceback, rich_utils.Traceback); assert not isinstance(1, Traceback); "
        "assert rich_utils.Markdown is Markdown and rich_utils.Traceback is Traceback"
    )
    _, err = run(tmp_path, "--help", after=after)
    assert err == "loaded []\n"


def test_attributes_are_those_of_the_real_class(tmp_path: Path) -> None:
    after = (
        "delayed = rich_utils.Markdown; print(delayed.elements['heading_open'].__name__); "
        "assert delayed('x').markup == 'x' and rich_utils.Markdown is not delayed"
    )
    out, err = run(tmp_path, "--help", after=after)
    assert out.endswith("Heading\n")
    assert err == "loaded []\n"
