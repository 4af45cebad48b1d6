"""Complete environments of commands that agents run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.detect.make_dumps import compose
from tests.integration.outside import envelope, environment, run

from tooli.detect import detect_execution_context

HERE = Path(__file__).parent
DUMPS: list[dict[str, Any]] = json.loads((HERE / "dumps.json").read_text("utf-8"))
APP = '''
from tooli import Tooli

app = Tooli("shop")


@app.command()
def stock(item: str) -> dict[str, str]:
    """Say what is there."""
    return {"item": item}


@app.command()
def shout(item: str):
    """Print it."""
    print(item)


app()
'''
named = pytest.mark.parametrize("dump", DUMPS, ids=[dump["program"] for dump in DUMPS])


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("app") / "shop.py"
    file.write_text(APP)
    return file


def test_the_file_is_current() -> None:
    assert compose() == DUMPS


def test_eight_agents_and_more() -> None:
    assert len({dump["program"] for dump in DUMPS}) >= 8


def test_measured_markers_are_in_the_facts() -> None:
    facts = (HERE / "callers.json").read_text("utf-8")
    for dump in DUMPS:
        for name in dump["from"]["measured"]:
            assert name in facts, (dump["program"], name)


@named
def test_detected_caller(dump: dict[str, Any]) -> None:
    seen, wanted = detect_execution_context(dump["environment"]), dump["expected"]
    assert seen.caller_id == wanted["agent"]
    assert seen.is_agent is (wanted["agent"] is not None)
    assert seen.caller_version == wanted.get("version")
    assert seen.session_id == wanted.get("session")
    if "shown" in wanted:
        assert wanted["shown"] in [one.name for one in seen.candidates if not one.decides]


@named
def test_a_real_process_in_that_environment(app: Path, dump: dict[str, Any]) -> None:
    kept = {k: v for k, v in dump["environment"].items() if k not in ("HOME", "PWD", "PATH")}
    path = environment()["PATH"]
    if "/.pi/" in dump["environment"]["PATH"]:
        path = f"/nowhere/.pi/agent/bin:{path}"
    env = environment(**kept, PATH=path)
    answer = envelope(run(app, "stock", "pears", env=env).out)
    assert answer["result"] == {"item": "pears"}
    wanted = dump["expected"]
    assert answer["meta"].get("caller_id") == wanted["agent"]
    assert answer["meta"].get("caller_version") == wanted.get("version")
    assert "session_id" not in answer["meta"]  # it is the agent's, not one of ours
    printed = run(app, "shout", "pears", env=env).out
    if wanted["agent"] is None:
        assert printed == b"pears\n"
    else:
        assert envelope(printed)["result"].strip() == "pears"
