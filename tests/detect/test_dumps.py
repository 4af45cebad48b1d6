"""Detection in the complete environments of commands that agents run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.detect.make_dumps import compose
from tests.integration.app_process import environment, read_envelope, run

from tooli.detect import detect_execution_context

HERE = Path(__file__).parent
DUMPS: list[dict[str, Any]] = json.loads((HERE / "dumps.json").read_text("utf-8"))
APP = '''
from tooli import Tooli

app = Tooli("shop")


@app.command()
def stock(item: str) -> dict[str, str]:
    """Return the item."""
    return {"item": item}


@app.command()
def shout(item: str):
    """Print the item."""
    print(item)


app()
'''
for_each_dump = pytest.mark.parametrize("dump", DUMPS, ids=[dump["program"] for dump in DUMPS])


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("app") / "shop.py"
    file.write_text(APP)
    return file


def test_dumps_file_is_current() -> None:
    assert compose() == DUMPS


def test_dumps_cover_at_least_eight_agents() -> None:
    assert len({dump["program"] for dump in DUMPS}) >= 8


def test_measured_markers_are_in_the_facts() -> None:
    facts = (HERE / "callers.json").read_text("utf-8")
    for dump in DUMPS:
        for name in dump["from"]["measured"]:
            assert name in facts, (dump["program"], name)


@for_each_dump
def test_detected_caller(dump: dict[str, Any]) -> None:
    context, expected = detect_execution_context(dump["environment"]), dump["expected"]
    assert context.caller_id == expected["agent"]
    assert context.is_agent is (expected["agent"] is not None)
    assert context.caller_version == expected.get("version")
    assert context.session_id == expected.get("session")
    if "shown" in expected:
        assert expected["shown"] in [
            candidate.name for candidate in context.candidates if not candidate.decides
        ]


@for_each_dump
def test_caller_detected_in_process(app: Path, dump: dict[str, Any]) -> None:
    variables = {k: v for k, v in dump["environment"].items() if k not in ("HOME", "PWD", "PATH")}
    path = environment()["PATH"]
    if "/.pi/" in dump["environment"]["PATH"]:
        path = f"/nowhere/.pi/agent/bin:{path}"
    env = environment(**variables, PATH=path)
    response = read_envelope(run(app, "stock", "pears", env=env).out)
    assert response["result"] == {"item": "pears"}
    expected = dump["expected"]
    assert response["meta"].get("caller_id") == expected["agent"]
    assert response["meta"].get("caller_version") == expected.get("version")
    assert "session_id" not in response["meta"]  # the agent's session is not a session of tooli
    printed = run(app, "shout", "pears", env=env).out
    if expected["agent"] is None:
        assert printed == b"pears\n"
    else:
        assert read_envelope(printed)["result"].strip() == "pears"
