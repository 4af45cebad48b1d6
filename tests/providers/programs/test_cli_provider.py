from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.providers.programs.sample_programs import NOTES, SHOP, provide, tools_by_key, write

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import DefinitionError, DependencyError
from tooli.providers import CLIProvider, LocalProvider
from tooli.providers.provider import UNKNOWN_EFFECTS


@pytest.fixture(autouse=True)
def keep_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write(tmp_path / "notes", NOTES)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write(tmp_path / "shop", SHOP)


def call(app: Tooli, name: str, **arguments: Any) -> Any:
    return app.options(yes=True).call(name, **arguments)


def test_commands_become_tools(notes: Path) -> None:
    app, provider = provide(notes)
    tools = tools_by_key(provider)
    assert list(tools) == ["add", "fail"]
    add = tools["add"]
    assert add.doc.summary == "Add a note."
    assert add.behavior == UNKNOWN_EFFECTS and add.limits.stops_itself
    assert provider.description == "Keep notes."
    assert add.schema is not None
    properties: Any = add.schema["properties"]
    assert properties["level"] == {"type": "integer", "enum": [1, 2, 3], "default": 1}
    assert properties["size"]["maxItems"] == 2
    assert properties["store"]["description"] == "The file (notes.json)."
    assert add.schema["required"] == ["text"]
    result = call(app, "x.add", text="--text", more=["-1"], tag=["a"], pin=False, size=[-1, 2])
    assert result.unwrap() == {
        "store": "notes.json",
        "command": "add",
        "text": "--text",
        "more": ["-1"],
        "tag": ["a"],
        "level": 1,
        "pin": False,
        "verbose": 0,
        "size": [-1, 2],
        "color": None,
        "api_token": None,
    }
    colors = [call(app, "x.add", text="t", color=c).result["color"] for c in (True, "-x")]
    assert colors == ["auto", "-x"]
    assert call(app, "x.add", text="t", verbose=2).result["verbose"] == 2


def test_failures_and_refusals(notes: Path) -> None:
    app, _ = provide(notes)
    assert app.call("x.fail").error.code == "E1010"  # nobody has confirmed it
    failed = call(app, "x.fail", code=7)
    assert failed.error.code == "E4040" and "exit code 7" in failed.error.message
    assert failed.error.details["stderr"] == "Traceback: it did not work"
    assert call(app, "x.fail", code=2).error.code == "E1000"
    assert call(app, "x.add", text="t", level=4).error.code == "E1003"
    assert call(app, "x.add", text="t", size=[1]).error.field == "size"
    assert call(app, "x.add", text="t", nope=1).error.code == "E1004"
    assert call(app, "x.add").error.code == "E1002"
    assert call(app, "x.add", text="a\0b").error.category == "input"


def test_standard_input_and_extra_arguments(shop: Path) -> None:
    app, _ = provide(shop)
    result = call(app, "x.db.load", file="-", stdin="a\nb\n", rest=["-x"])
    assert result.result == [{"line": "a", "rest": "-x"}, {"line": "b", "rest": "-x"}]


def test_timeout_ends_the_program(shop: Path) -> None:
    app, _ = provide(shop, hidden=True, timeout=1.5)
    result = call(app, "x.db.wait", seconds=60)
    assert result.error.code == "E4050"


def test_folder_environment_and_standard_input(tmp_path: Path) -> None:
    text = "import argparse, os, sys\nargparse.ArgumentParser().parse_args()\n"
    text += "print(os.getcwd(), os.environ['MODE'], os.environ['NO_COLOR'], sys.stdin.read())"
    (tmp_path / "inner").mkdir()
    script = write(tmp_path / "where.py", text)
    app, _ = provide(
        script, cwd=tmp_path / "inner", env={"MODE": "fast"}, stdin=True, annotations=ReadOnly
    )
    assert app.call("x.where", stdin="in").result == f"{tmp_path / 'inner'} fast 1 in"
    assert app.call("x.where").result == f"{tmp_path / 'inner'} fast 1 "


def test_a_broken_program_hides_no_other_tool(tmp_path: Path) -> None:
    script = write(tmp_path / "broken.py", "import nonexistent_module")
    app, _ = provide(script)
    math = LocalProvider("math")
    math.tool(annotations=ReadOnly)(add)
    app.add_provider(math)
    assert app.call("add", a=1, b=2).result == 3
    message = app.call("x.broken").error.message
    assert "No module named 'nonexistent_module'" in message and "sandbox=False" in message


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_invalid_definitions(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="sandbox='yes'"):
        CLIProvider("exe:x", sandbox="yes")
    with pytest.raises(DefinitionError, match="list of names"):
        CLIProvider("exe:x", only=[1])  # type: ignore[list-item]


@pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX")
def test_programs_without_a_parser(tmp_path: Path) -> None:
    text = "#!/bin/sh\nif [ $1 = --help ]; then echo 'Usage: greet NAME'; else echo \"hi $@\"; fi"
    script = write(tmp_path / "greet", text)
    app, provider = provide(script, raw=True)
    (greet,) = tools_by_key(provider).values()
    assert greet.doc.summary == "Run greet." and "Usage: greet NAME" in greet.doc.description
    assert call(app, "x.greet", arguments=["-x", "--", "a b"]).result == "hi -x -- a b"
    with pytest.raises(DefinitionError, match="raw=True"):
        tools_by_key(CLIProvider(str(script)))
    python = write(tmp_path / "echo.py", "import sys\nprint('usage: echo', sys.argv[1:])")
    app, _ = provide(python, raw=True)
    assert call(app, "x.echo", arguments=["-v"]).result == "usage: echo ['-v']"
    silent = CLIProvider(str(write(tmp_path / "silent.py", "raise SystemExit(1)")), raw=True)
    with pytest.raises(DependencyError, match="shows no help text with --help"):
        tools_by_key(silent)


CYCLOPTS = f"""#!{sys.executable}
from typing import Annotated, Literal
from cyclopts import App, Parameter
app = App(name="tool")

@app.command
def add(a: int, b: list[str] | None = None, *rest: str, mode: Literal["x", "y"] = "x",
        loud: Annotated[bool, Parameter(help="Loud.")] = False, pair: tuple[int, str] = (1, "z")):
    "Add things."
    print([a, b, list(rest), mode, loud, pair])

app()
"""


def test_apps_of_cyclopts(tmp_path: Path) -> None:
    pytest.importorskip("cyclopts")
    app, _ = provide(write(tmp_path / "tool", CYCLOPTS), annotations=ReadOnly)
    given: dict[str, Any] = {"a": -5, "b": ["-x", "y"], "rest": ["-q", "z"], "mode": "y"}
    loud = app.call("x.add", **given, loud=True, pair=[-3, "k"])
    assert loud.result == "[-5, ['-x', 'y'], ['-q', 'z'], 'y', True, (-3, 'k')]"
    quiet = app.call("x.add", **given, loud=False)
    assert quiet.result == "[-5, ['-x', 'y'], ['-q', 'z'], 'y', False, (1, 'z')]"
    assert app.call("x.add", a=1, pair=[1, "-k"]).error.field == "pair"


def test_two_processes_read_a_program_at_once(notes: Path) -> None:
    providers = [CLIProvider(str(notes)) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(tools_by_key, providers))
    assert [list(tools) for tools in found] == [["add", "fail"]] * 4


def test_a_provider_that_is_not_used_loads_little() -> None:
    code = (
        "import sys; from tooli.providers import CLIProvider; CLIProvider('exe:black');"
        "print([name for name in sys.modules if '.programs.' in name or '.execution' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['tooli.providers.programs.cli_provider']\n"
