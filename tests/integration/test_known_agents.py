"""Detected callers gain nothing: every destructive example, as every agent that is known."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.app_process import APPS, environment, read_envelope, run, run_interactive

from tooli.core.call import Call, Caller, Failed, Options
from tooli.detect import (
    AGENT_ALIASES,
    NON_AGENT_CALLERS,
    STRONG_MARKERS,
    WEAK_MARKERS,
    detect_execution_context,
)
from tooli.pipeline.drivers import run as run_call
from tooli.testing import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tooli import Tooli

EXAMPLES = Path(__file__).parents[2] / "examples"
GUARDS = ("annotations=Destructive", "requires_approval=", "human_in_the_loop=", "danger_level=")
PLACES = {"examples": EXAMPLES, "tests.integration.apps": APPS}
MODULES = [
    ".".join((package, *path.relative_to(folder).with_suffix("").parts))
    for package, folder in PLACES.items()
    for path in sorted(folder.rglob("*.py"))
    if any(guard in path.read_text(encoding="utf-8") for guard in GUARDS)
]
GUARDED: dict[tuple[str, str], list[str]] = {
    ("file-tools", "delete"): ["{file}"],
    ("demo", "delete"): ["{file}"],
    ("inputs", "drop"): ["{file}"],
    ("served", "wipe"): ["{file}"],
    ("served", "wipe-async"): ["{file}"],
    ("served", "launch"): ["{file}"],
    ("shredder", "delete"): ["{file}"],
    ("shredder", "wipe"): ["{file}"],
    ("shredder", "hang"): [],
}
"""Every command of the examples that destroys or needs a human, and words for it."""
NAMES = sorted(
    {row[0] for row in STRONG_MARKERS}
    | set(AGENT_ALIASES.values())
    | set(NON_AGENT_CALLERS)
    | {"human"}
)


def _environment_of(marker: str) -> dict[str, str]:
    """Variables that a marker is found in."""
    found: dict[str, str] = {}
    for part in marker.split(" & "):
        name, equals, value = part.partition("=")
        if not equals:
            name, holds, value = part.partition("~")
            value = f"/x/{value}:/usr/bin:/bin" if holds else "x"
        found[name] = value.partition("|")[0]
    return found


MARKS = [(row[0], marker) for row in STRONG_MARKERS for marker in row[2]]
ALL_MARKS = [*MARKS, *((name, marker) for name, row in WEAK_MARKERS for marker in row)]


@pytest.fixture(scope="module")
def apps() -> Iterator[dict[str, Tooli]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(APPS))  # where they load their lazy commands from
        found = [importlib.import_module(name).app for name in MODULES]
        yield {app._state.name: app for app in found}


@pytest.fixture
def precious(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "precious.txt"
    file.write_text("precious")
    return file


def _words(key: tuple[str, str], file: Path) -> list[str]:
    return [key[1], *(word.format(file=file) for word in GUARDED[key])]


def test_every_destructive_example_is_tried(apps: Any) -> None:
    found = {
        (name, tool.key)
        for name, app in apps.items()
        for tool in app.catalog
        if tool.behavior.destructive or tool.guard.may_need_approval
    }
    assert found == GUARDED.keys()


@pytest.mark.parametrize(("agent", "marker"), MARKS)
def test_the_marker_is_what_an_agent_leaves(agent: str, marker: str) -> None:
    """Otherwise the tests below would try nobody."""
    assert detect_execution_context(_environment_of(marker)).is_agent


@pytest.mark.parametrize(("agent", "marker"), ALL_MARKS)
def test_by_what_it_leaves(
    agent: str, marker: str, apps: Any, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in _environment_of(marker).items():
        monkeypatch.setenv(name, value)
    for key in GUARDED:
        done = invoke(apps[key[0]], *_words(key, precious), mode="json")
        code = "E2101" if key == ("served", "launch") else "E1010"
        assert done.envelope["error"]["code"] == code, key
        done = invoke(apps[key[0]], *_words(key, precious), "--yes", "--dry-run", mode="json")
        assert done.envelope["meta"]["dry_run"] is True
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", NAMES)
def test_by_what_it_calls_itself(
    name: str, apps: Any, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_CALLER", name)
    for key in GUARDED:
        app = apps[key[0]]
        tool = app.find(key[1])
        given = {
            param.name: [str(precious)] if param.is_multiple else str(precious)
            for param in tool.public_params[: len(GUARDED[key])]
        }
        for surface in ("cli", "python", "http", "mcp"):
            who = Caller(surface, name, category="ai_agent", maybe_agent=True)
            call, stages = app.prepare(Call(tool, given, who, [], Options()))
            outcome = run_call(call, stages)
            assert isinstance(outcome, Failed)
            assert outcome.error.code in ("E1010", "E2101"), outcome.error
    assert precious.read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal is needed")
@pytest.mark.parametrize("agent", sorted({row[0] for row in STRONG_MARKERS}))
def test_as_a_process(agent: str, precious: Path, tmp_path: Path) -> None:
    """All that the agent leaves, through a pipe and at a terminal of its own."""
    env = environment(TERM="xterm-256color", TOOLI_STATE_DIR=str(tmp_path / "state"))
    for name, marker in MARKS:
        if name == agent:
            env.update(_environment_of(marker))
    app = EXAMPLES / "file_tools" / "app.py"
    done = run(app, "delete", str(precious), env=env)
    assert (done.code, read_envelope(done.out)["error"]["code"]) == (2, "E1010")
    done = run_interactive(app, "delete", str(precious), "--text", env=env)
    assert done.code == 2
    assert b"Run it?" not in done.out
    assert precious.read_text() == "precious"
