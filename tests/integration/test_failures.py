"""Failures of every kind: exit code, envelope and messages, with pipes and with terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.integration.app_process import (
    OUTCOMES_APP,
    environment,
    is_clean,
    read_envelope,
    read_failed_stream,
    run,
    run_on_terminal,
)

if TYPE_CHECKING:
    from pathlib import Path

# command line: (exit code, error code)
INPUT_ERRORS = {
    "": (2, "E1001"),
    "nosuch": (2, "E1001"),
    "ad 1 2": (2, "E1001"),
    "--bogus add 1 2": (2, "E1004"),
    "-Z": (2, "E1004"),
    "add 1 2 --bogus": (2, "E1004"),
    "add 1 2 --bogus=7": (2, "E1004"),
    "add 1 2 -Z": (2, "E1004"),
    "add 1": (2, "E1002"),
    "add": (2, "E1002"),
    "add 1 2 3": (2, "E1005"),
    "add 1 two": (2, "E1003"),
    "add 1 2.5": (2, "E1003"),
    "add 1 2 --times": (2, "E1006"),
    "add 1 2 --times=x": (2, "E1003"),
    "add 1 2 --limit three": (2, "E1007"),
    "add --input {": (2, "E1008"),
    "add --input @/nowhere/at/all": (2, "E1008"),
    "add --input [1]": (2, "E1008"),
}
RUNTIME_ERRORS = {
    "crash": (70, "E5000"),
    "crash-bare": (70, "E5000"),
    "crash-base": (130, "E4130"),
    "crash-async": (70, "E5000"),
    "crash-late": (70, "E5000"),
    "crash-async-late": (70, "E5000"),
    "cancelled": (130, "E4130"),
    "missing-file": (10, "E3010"),
    "conflict": (20, "E3020"),
    "own-code": (20, "E3001"),
    "temporary": (75, "E4075"),
    "broken-socket": (40, "E4040"),
    "leave 3": (3, "E4001"),
    "leave -- -1": (255, "E4001"),
    "leave 257": (1, "E4001"),
    "leave bye": (1, "E4001"),
    "say-and-fail": (70, "E5000"),
}
FAILURES = {**INPUT_ERRORS, **RUNTIME_ERRORS}
TERMINALS = ("", "1", "02", "012")


@pytest.mark.parametrize("line", FAILURES)
@pytest.mark.parametrize("terminals", TERMINALS, ids=lambda t: f"terminals-{t or 'none'}")
def test_json_is_one_envelope(line: str, terminals: str) -> None:
    done = run_on_terminal(OUTCOMES_APP, *with_flag(line, "--json"), terminals=terminals)
    assert done.code == FAILURES[line][0]
    found = read_envelope(done.out)
    assert found["ok"] is False
    assert found["error"]["code"] == FAILURES[line][1]
    assert done.err == b""


@pytest.mark.parametrize("line", FAILURES)
def test_json_is_the_default_for_a_pipe(line: str) -> None:
    done = run(OUTCOMES_APP, *line.split())
    if line == "say-and-fail":  # text of a printing command stays text
        assert done.out == b"so far\n"
        return
    assert done.code == FAILURES[line][0]
    assert read_envelope(done.out)["error"]["code"] == FAILURES[line][1]
    assert done.err == b""


@pytest.mark.parametrize("line", FAILURES)
@pytest.mark.parametrize("terminals", ["", "012"], ids=["pipes", "terminals"])
def test_jsonl_ends_with_the_envelope(line: str, terminals: str) -> None:
    done = run_on_terminal(OUTCOMES_APP, *with_flag(line, "--jsonl"), terminals=terminals)
    assert done.code == FAILURES[line][0]
    items, last = read_failed_stream(done.out)
    assert items == ([{"i": i} for i in range(10)] if "late" in line else [])
    assert last["error"]["code"] == FAILURES[line][1]
    assert last["error"].get("details", {}).get("items_before_failure", 0) == len(items)
    assert done.err == b""


@pytest.mark.parametrize("line", FAILURES)
@pytest.mark.parametrize("terminals", ["", "012"], ids=["pipes", "terminals"])
def test_plain_mode_reports_errors_on_stderr(line: str, terminals: str) -> None:
    done = run_on_terminal(OUTCOMES_APP, *with_flag(line, "--plain"), terminals=terminals)
    assert done.code == FAILURES[line][0]
    expected = b"so far\n" if line == "say-and-fail" else b""
    assert done.out == (b"".join(b"%d\n" % i for i in range(10)) if "late" in line else expected)
    assert done.err.startswith(b"error: ")
    assert b"\x1b" not in done.err
    assert is_clean(done.err)


@pytest.mark.parametrize("line", INPUT_ERRORS)
@pytest.mark.parametrize("terminals", ["", "012"], ids=["pipes", "terminals"])
def test_text_mode_reports_errors_on_stderr(line: str, terminals: str) -> None:
    done = run_on_terminal(OUTCOMES_APP, *with_flag(line, "--text"), terminals=terminals)
    assert done.code == 2
    assert done.out == b""
    assert done.err.strip()
    assert is_clean(done.err)


@pytest.mark.parametrize("line", ["conflict", "own-code", "temporary", "leave 3", "leave bye"])
def test_text_mode_shows_no_traceback_for_tool_errors(line: str) -> None:
    done = run(OUTCOMES_APP, *with_flag(line, "--text"))
    assert done.code == RUNTIME_ERRORS[line][0]
    assert done.out == b""
    assert is_clean(done.err)


@pytest.mark.parametrize("line", ["crash", "crash-async", "crash-bare", "broken-socket"])
def test_text_mode_shows_a_crash_like_typer(line: str) -> None:
    done = run(OUTCOMES_APP, line, "--text")
    assert done.code == 1
    assert done.out == b""
    assert b"Traceback" in done.err
    assert b"tooli/surfaces" not in done.err


def test_invalid_environment_variable_is_an_error() -> None:
    done = run(OUTCOMES_APP, "add", "1", "2", env=environment(TOOLI_OUTPUT="xml"))
    assert done.code == 2
    assert read_envelope(done.out)["error"]["code"] == "E1007"


@pytest.mark.parametrize(
    "arguments", ["--json add 1 x", "add --json 1 x", "add 1 x --json", "add 1 x -ojson"]
)
def test_output_flag_works_at_any_position(arguments: str) -> None:
    done = run_on_terminal(OUTCOMES_APP, *arguments.split())
    assert done.code == 2
    assert read_envelope(done.out)["error"]["field"] == "b"


def with_flag(line: str, flag: str) -> list[str]:
    """Return the arguments of a command line, with a framework flag in front."""
    return [flag, *line.split()]


INVALID_DEFINITIONS = """
from tooli import Tooli
app = Tooli("invalid-definitions", version="1")
app.lazy_command("no_such_module:fn", "missing")

@app.command()
def unreadable(x: "NoSuchType") -> int:
    return 1

@app.command()
def fine() -> int:
    return 1

app()
"""


@pytest.mark.parametrize("line", ["missing", "unreadable 1", "missing --schema"])
def test_invalid_definition_is_an_envelope(line: str, tmp_path: Path) -> None:
    app = tmp_path / "invalid_definitions.py"
    app.write_text(INVALID_DEFINITIONS)
    for mode in (["--json"], ["-o", "json"], ["--output=json"], []):
        done = run(app, *line.split(), *mode)
        assert done.code == 70
        assert "DefinitionError" in read_envelope(done.out)["error"]["message"]
        assert done.err == b""
    assert run(app, "fine", "--json").code == 0


@pytest.mark.parametrize("flag", ["--schema", "--help-agent"])
def test_invalid_definition_does_not_hide_other_commands(flag: str, tmp_path: Path) -> None:
    app = tmp_path / "invalid_definitions.py"
    app.write_text(INVALID_DEFINITIONS)
    done = run(app, flag)
    assert done.code == 0
    assert b"fine" in done.out and b"unreadable" not in done.out
    assert done.err.count(b"is left out") == 2
