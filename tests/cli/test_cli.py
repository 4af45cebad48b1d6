"""Invocation: how a command line is read, and that nothing changes it afterwards."""

from __future__ import annotations

import ast
import gc
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tooli
from tooli.cli import needs_argument_checks, process, read_invocation
from tooli.core._hot_tables import AGENT_MARKERS, CALLER_VARIABLES
from tooli.detect import detect_execution_context, identify_caller

if TYPE_CHECKING:
    from tooli import Tooli

SOURCES = sorted((Path(tooli.__file__).parent / "cli").glob("*.py"))


@pytest.fixture
def app() -> Tooli:
    app = tooli.Tooli("desk", version="1.0")

    @app.command()
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app.command()
    def other() -> None: ...

    return app


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*CALLER_VARIABLES, "TOOLI_SESSION_ID", "TOOLI_CALLER_VERSION", "TOOLI_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_invocation_is_frozen(app: Tooli) -> None:
    invocation = read_invocation(app, ["add", "1", "--json"], "desk")
    with pytest.raises(AttributeError, match="frozen"):
        invocation.mode = "text"  # type: ignore[misc]
    assert invocation.replace(mode="text").mode == "text"
    assert invocation.mode == "json"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_function_writes_to_an_invocation(path: Path) -> None:
    """Functions do not set attributes of the output, deadline or Typer run either."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    written = [ast.unparse(target) for target in targets if isinstance(target, ast.Attribute)]
    names = ("invocation", "output", "deadline", "typer_run", "call")
    owners = tuple(f"{prefix}{name}." for prefix in ("", "self.") for name in names)
    assert not [text for text in written if text.startswith(owners)]


@pytest.mark.parametrize(
    ("argv", "mode", "has_explicit_mode"),
    [
        (["add", "1", "--json"], "json", True),
        (["add", "1"], "json", False),
        (["add", "1", "-o", "yaml"], "yaml", True),
        (["add", "1", "--print0"], "plain", False),
        (["--install-completion"], "text", False),
        (["mcp", "--json"], "json", True),
    ],
)
def test_output_mode_is_read_from_the_line(
    app: Tooli,
    clean_environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    mode: str,
    has_explicit_mode: bool,
) -> None:
    invocation = read_invocation(app, argv, "desk")
    assert (invocation.mode, invocation.has_explicit_mode) == (mode, has_explicit_mode)


def test_garbage_collector_is_on_after_a_command_exits_on_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "exits_on_import.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    app = tooli.Tooli("desk")
    app.lazy_command("exits_on_import:go", name="go")
    with pytest.raises(SystemExit) as raised:
        app(["go"])
    assert raised.value.code == 3
    assert gc.isenabled()


# ------------------------------------------------------------------ who is calling


def marker_value(variable: str) -> str:
    values = AGENT_MARKERS[variable][2]
    return values[0] if values else "x1"


ENVIRONMENTS = [
    *[{name: marker_value(name)} for name in AGENT_MARKERS],
    *[
        {first: marker_value(first), second: marker_value(second)}
        for first, second in itertools.combinations(sorted(AGENT_MARKERS)[::3], 2)
    ],
    *[{name: value} for name in AGENT_MARKERS for value in ("0", "", "false")],
    *[{"CLAUDECODE": "1", "CI": "true"}, {"CLAUDECODE": "1", "OPENCODE_TERMINAL": "1"}],
    *[{"OPENCODE": "1", "OPENCODE_TERMINAL": "1"}, {"CODEX_VERSION": "1.2", "CODEX_CI": "1"}],
    *[{"CLAUDECODE": "1", "AI_AGENT": "claude-code_2-1-325_agent"}, {"AGENT": "amp"}],
    *[
        {"CLAUDECODE": "1", "AI_AGENT": value}
        for value in (
            *("", "1", "claude-code", "claude-code_agent", "claude-code_1", "claude-code_x_agent"),
            *("claude-code_2-1_agent_agent", "claude-code_-1_agent", "claude-code_1_2_agent"),
            *("claude-code_2--1_agent", "codex_1-0_agent", "_agent", "claude-code_٣_agent"),
            *("claude-code__agent", "claude-code_1-0_agent ", "claude-code_2-_agent"),
        )
    ],
    *[{"CLAUDECODE": "1", "TOOLI_CALLER": "me"}, {"CRUSH": "1", "AI_AGENT": "crush"}],
    *[{"CLAUDECODE": "1", "TOOLI_CALLER_VERSION": "7"}, {"CI": "1"}, {"TOOLI_SESSION_ID": "s1"}],
    *[{"CLAUDECODE": "1", "TOOLI_SESSION_ID": "s1"}, {"CLAUDECODE": "2"}, {}],
]


@pytest.mark.parametrize("variables", ENVIRONMENTS, ids=str)
def test_caller_of_an_invocation_equals_the_detected_caller(
    app: Tooli, clean_environment: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        clean_environment.setenv(name, value)
    caller = read_invocation(app, ["add", "1", "--json"], "desk").caller
    expected = (None, None, None)
    if not CALLER_VARIABLES.isdisjoint(os.environ):
        expected = identify_caller(detect_execution_context())
    assert (caller.name, caller.version, caller.category) == expected
    assert caller.session == variables.get("TOOLI_SESSION_ID")


def test_agent_is_identified_by_its_variable(
    clean_environment: pytest.MonkeyPatch,
) -> None:
    clean_environment.setenv("CLAUDECODE", "1")
    assert process.sniff_environment()[:2] == (True, ("claude-code", None))
    clean_environment.setenv("AI_AGENT", "claude-code_2-1-325_agent")
    assert process.sniff_environment()[:2] == (True, ("claude-code", "2.1.325"))
    clean_environment.setenv("TOOLI_CALLER", "me")
    assert process.sniff_environment()[:2] == (True, None)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [(["add", "1"], False), (["add", "a\\b"], True), (["add", "@x"], True), (["\x1b"], True)],
)
def test_arguments_with_special_characters_need_checks(argv: list[str], expected: bool) -> None:
    assert needs_argument_checks(argv) is expected
