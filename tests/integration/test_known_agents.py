"""Detected agents get no extra permissions: every destructive command, as every known agent."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.app_process import APPS, environment, read_envelope, run, run_interactive

from tooli.core.call import Call, Caller, Failed, Options
from tooli.detect import detect_execution_context
from tooli.detect.markers import AGENT_ALIASES, NON_AGENT_CALLERS, STRONG_MARKERS, WEAK_MARKERS
from tooli.pipeline.drivers import run as run_call
from tooli.testing import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli import Tooli

EXAMPLES = Path(__file__).parents[2] / "examples"
GUARD_KEYWORDS = (
    "annotations=Destructive",
    "requires_approval=",
    "human_in_the_loop=",
    "danger_level=",
)
FOLDERS = {"examples": EXAMPLES, "tests.integration.apps": APPS}
MODULES = [
    ".".join((package, *path.relative_to(folder).with_suffix("").parts))
    for package, folder in FOLDERS.items()
    for path in sorted(folder.rglob("*.py"))
    if any(guard in path.read_text(encoding="utf-8") for guard in GUARD_KEYWORDS)
]
DESTRUCTIVE_COMMANDS: dict[tuple[str, str], list[str]] = {
    ("file-tools", "delete"): ["{file}"],
    ("demo", "delete"): ["{file}"],
    ("inputs", "drop"): ["{file}"],
    ("inputs", "revoke"): [],
    ("served", "wipe"): ["{file}"],
    ("served", "wipe-async"): ["{file}"],
    ("served", "launch"): ["{file}"],
    ("shredder", "delete"): ["{file}"],
    ("shredder", "wipe"): ["{file}"],
    ("shredder", "hang"): [],
}
"""All commands of the apps that are destructive or need an approval, with their arguments."""
CALLER_NAMES = sorted(
    {row[0] for row in STRONG_MARKERS}
    | set(AGENT_ALIASES.values())
    | set(NON_AGENT_CALLERS)
    | {"human"}
)


def _variables_for(marker: str) -> dict[str, str]:
    """Return environment variables that match a marker."""
    found: dict[str, str] = {}
    for part in marker.split(" & "):
        if part[0] == "!":
            continue
        name, equals, value = part.partition("=")
        if not equals:
            name, holds, value = part.partition("~")
            value = f"/x/{value}:/usr/bin:/bin" if holds else "x"
        found[name] = value.partition("|")[0]
    return found


AGENT_MARKERS = [(row[0], marker) for row in STRONG_MARKERS for marker in row[2]]
ALL_MARKERS = [*AGENT_MARKERS, *((name, marker) for name, row in WEAK_MARKERS for marker in row)]


@pytest.fixture(scope="module")
def apps() -> Iterator[dict[str, Tooli]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(APPS))  # the folder of the lazy commands
        found = [importlib.import_module(name).app for name in MODULES]
        yield {app._state.name: app for app in found}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "precious.txt"
    path.write_text("precious")
    return path


def _argv(key: tuple[str, str], file: Path) -> list[str]:
    return [key[1], *(word.format(file=file) for word in DESTRUCTIVE_COMMANDS[key])]


def test_list_of_destructive_commands_is_complete(apps: Any) -> None:
    found = {
        (name, tool.key)
        for name, app in apps.items()
        for tool in app.catalog
        if tool.behavior.destructive or tool.guard.may_need_approval
    }
    assert found == DESTRUCTIVE_COMMANDS.keys()


@pytest.mark.parametrize(("agent", "marker"), AGENT_MARKERS)
def test_agent_is_detected_by_its_marker(agent: str, marker: str) -> None:
    """The tests below rely on this."""
    assert detect_execution_context(_variables_for(marker)).is_agent


@pytest.mark.parametrize(("agent", "marker"), ALL_MARKERS)
def test_destructive_commands_are_refused_for_a_detected_agent(
    agent: str, marker: str, apps: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in _variables_for(marker).items():
        monkeypatch.setenv(name, value)
    for key in DESTRUCTIVE_COMMANDS:
        done = invoke(apps[key[0]], *_argv(key, file), mode="json")
        code = "E2101" if key == ("served", "launch") else "E1010"
        assert done.envelope["error"]["code"] == code, (key, done.envelope)
        done = invoke(apps[key[0]], *_argv(key, file), "--yes", "--dry-run", mode="json")
        assert done.envelope["meta"]["dry_run"] is True
    assert file.read_text() == "precious"


@pytest.mark.parametrize("name", CALLER_NAMES)
def test_destructive_commands_are_refused_for_a_declared_caller(
    name: str, apps: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_CALLER", name)
    for key in DESTRUCTIVE_COMMANDS:
        app = apps[key[0]]
        tool = app.find(key[1])
        arguments = {
            param.name: [str(file)] if param.is_multiple else str(file)
            for param in tool.public_params[: len(DESTRUCTIVE_COMMANDS[key])]
        }
        for surface in ("cli", "python", "http", "mcp"):
            caller = Caller(surface, name, category="ai_agent", maybe_agent=True)
            call, stages = app.prepare(Call(tool, arguments, caller, [], Options()))
            outcome = run_call(call, stages)
            assert isinstance(outcome, Failed)
            assert outcome.error.code in ("E1010", "E2101"), outcome.error
    assert file.read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
@pytest.mark.parametrize("agent", sorted({row[0] for row in STRONG_MARKERS}))
def test_destructive_command_is_refused_in_a_process(
    agent: str, file: Path, tmp_path: Path
) -> None:
    """With all markers of the agent, through a pipe and on a terminal."""
    env = environment(TERM="xterm-256color", TOOLI_STATE_DIR=str(tmp_path / "state"))
    for name, marker in AGENT_MARKERS:
        if name == agent:
            env.update(_variables_for(marker))
    app = EXAMPLES / "file_tools" / "app.py"
    done = run(app, "delete", str(file), env=env)
    assert (done.code, read_envelope(done.out)["error"]["code"]) == (2, "E1010")
    done = run_interactive(app, "delete", str(file), "--text", env=env)
    assert done.code == 2
    assert b"Run it?" not in done.out
    assert file.read_text() == "precious"
