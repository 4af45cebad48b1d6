"""Text from callers and files cannot forge what a person reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import pytest
from tests.integration.app_process import environment, run, run_on_terminal

from tooli import Argument, Tooli
from tooli.testing import invoke

MARKS = "\u202eevil\u202c\u200bz\u2066x\u2069\x1b[31m\x1b]0;title\x07\x9b1m\u061c\ufeff"
UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]|\x1b[^\\[]|\x1b\\[31m"
)
APP = """
from tooli import Tooli, SecretInput
from tooli.annotations import Destructive

app = Tooli("forged", version="1")

@app.command()
def show(name: str, n: int = 0) -> str:
    return name

@app.command(annotations=Destructive)
def drop(name: str, token: SecretInput[str] = "env:FORGED_TOKEN") -> str:
    return "dropped"

app()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "forged.py"
    path.write_text(APP)
    return path


@pytest.mark.parametrize("mode", ["--json", "--text", ""])
@pytest.mark.parametrize(
    "argv",
    [
        [MARKS],
        ["show", f"--{MARKS}", "x"],
        ["show", f"--{MARKS}=1"],
        ["show", "a", f"b{MARKS}"],
        ["show", "a", "--n", MARKS],
        ["show", "a", "--timeout", MARKS],
        ["show", "a", "-o", MARKS],
        ["show", "a", "--filter", MARKS],
        ["show", "a", "--input", f"@{MARKS}"],
        ["drop", "a", "--token", f"@{MARKS}"],
        ["drop", "a", "--token", f"env:{MARKS}"],
        ["audit", MARKS],
        ["docs", "man", MARKS],
        ["approvals", "grant", MARKS],
        [f"--{MARKS}"],
    ],
)
def test_usage_errors_contain_no_marks(argv: list[str], mode: str, program: Path) -> None:
    words = [word.replace("\0", "") for word in argv]
    done = run(program, *words, *([mode] if mode else []), env=environment())
    shown = (done.out + done.err).decode("utf-8", "replace")
    assert UNSAFE.search(shown) is None, repr(shown)
    assert done.code != 0


@pytest.mark.parametrize("argv", [["show", f"--{MARKS}", "x"], [MARKS], ["show", "a", f"b{MARKS}"]])
def test_usage_errors_on_terminal_contain_no_marks(argv: list[str], program: Path) -> None:
    done = run_on_terminal(program, *argv, env=environment(NO_COLOR="1"))
    shown = (done.out + done.err).decode("utf-8", "replace")
    assert UNSAFE.search(shown) is None, repr(shown)


@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--text", "--plain"])
def test_audit_tail_escapes_marks(mode: str, tmp_path: Path, program: Path) -> None:
    state = environment(XDG_STATE_HOME=str(tmp_path), TOOLI_STATE_DIR=str(tmp_path))
    name = f"a\nevent: forged{MARKS}"
    run(program, "drop", name, "--yes", env={**state, "FORGED_TOKEN": "hunter22"})
    done = run(program, "audit", "tail", mode, env=state)
    shown = done.out.decode()
    assert "forged" in shown
    assert "evil" in shown
    assert UNSAFE.search(shown) is None, repr(shown)
    assert "\nevent: forged" not in shown
    if mode == "--jsonl":
        assert all([json.loads(line) for line in shown.splitlines()])


def test_help_of_foreign_text_contains_no_marks() -> None:
    app = Tooli("foreign")

    @app.command(help=f"Summary {MARKS}.\n\n```\n{MARKS}\n```\n\n# Heading {MARKS}")
    def run_it(name: Annotated[str, Argument(help=f"Name {MARKS}.")] = "") -> str:
        return name

    @app.command("other")
    def other() -> None:
        """Other."""

    for line in ("run-it --help-agent", "run-it --schema", "--help-agent", "docs llms", "docs man"):
        done = invoke(app, *line.split())
        assert UNSAFE.search(done.stdout) is None, line
