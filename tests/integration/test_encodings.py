"""Text that stdout cannot encode: file names that are not UTF-8, and an ASCII stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.integration.app_process import environment, is_clean, parse_json, run

if TYPE_CHECKING:
    from pathlib import Path

APP = r"""
from pathlib import Path
from tooli import Tooli
app = Tooli("text", version="1")

@app.command()
def names() -> list[Path]:
    return [Path("a\udcff"), Path("caf\xe9 \u65e5\u672c\u8a9e")]

@app.command()
def one() -> str:
    return "a\udcff caf\xe9 \u65e5"

@app.command()
def half() -> str:
    return "\ud800 half"

@app.command()
def stream():
    for name in names():
        yield {"name": name}

@app.command()
def table() -> list[dict]:
    return [{"caf\xe9": "\u65e5\u672c\u8a9e", "n": 1}, {"caf\xe9": "\u05e9\u05dc", "n": 22}]

@app.command()
def fail() -> str:
    raise ValueError("a\udcff caf\xe9 \u65e5")
app()
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "text.py"
    path.write_text(APP)
    return path


def test_file_names_keep_their_bytes(app: Path) -> None:
    done = run(app, "names", "--plain", "--print0")
    assert done.out == b"a\xff\0" + "café 日本語".encode() + b"\0"
    assert run(app, "one", "--plain").out == b"a\xff " + "café 日\n".encode()
    assert run(app, "half", "--plain").out == b"\\ud800 half\n"


ENCODINGS = ({}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"})


@pytest.mark.parametrize("settings", ENCODINGS, ids=["utf8", "ascii", "latin1", "C"])
@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--plain", "--text"])
def test_output_works_in_every_encoding_of_stdout(
    app: Path, mode: str, settings: dict[str, str]
) -> None:
    env = environment(**settings)
    for line in ("names", "one", "half", "stream", "table", "--help", "table --help"):
        done = run(app, *line.split(), mode, env=env)
        assert done.code == 0, (line, done)
        assert done.err == b"", line
        if mode == "--json":
            parse_json(done.out)
    if mode != "--text":
        done = run(app, "fail", mode, env=env)
        assert done.code == 70
        assert is_clean(done.err)
