"""Help and output at any width, with text that breaks careless formatting."""

from __future__ import annotations

import json
import re

import pytest
from tests.integration.app_process import (
    APPS,
    environment,
    is_clean,
    parse_json,
    run,
    run_on_terminal,
)

APP = APPS / "text_layout.py"
COMMANDS = ("percent", "hebrew", "long", "odd-value", "café-%s")
WIDTHS = (40, 80, 300)


def cell_width(line: str) -> int:
    """Return the width of a line on a terminal, in cells."""
    from rich.cells import cell_len

    return cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line))


@pytest.mark.parametrize("width", [40, 80, 300])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_plain_help_fits_the_width(command: str, width: int) -> None:
    done = run(APP, *command.split(), "--help", "--plain", env=environment(COLUMNS=str(width)))
    assert done.code == 0
    assert done.err == b""
    text = done.out.decode()
    assert text.startswith("Usage: ")
    assert "\x1b" not in text
    assert not set(text) & set("╭│─╰")
    for line in text.splitlines():
        is_one_word = "averylongword" in line or "a-rather" in line or line.strip() == str(APP)
        fits = len(line) <= width or is_one_word
        assert fits or line.startswith(("Usage", "  --", "  -q")), (width, line)
    if command == "percent":
        flat = " ".join(text.split())
        assert "Takes 100% of %(prog)s and %s" in flat
        assert "[brackets]" in flat


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_typer_help_fits_the_terminal(command: str, width: int) -> None:
    env = environment(TERM="xterm-256color", COLUMNS=str(width))
    done = run_on_terminal(APP, *command.split(), "--help", size=(24, width), env=env)
    assert done.code == 0
    assert done.err == b""
    text = done.out.decode()
    assert "Usage: " in re.sub(r"\x1b\[[0-9;]*m", "", text)
    for line in text.splitlines():
        assert cell_width(line) <= width, (width, line)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", ["long", "hebrew", "percent 100%", "odd-value --value a%b"])
def test_results_fit_the_terminal(line: str, width: int) -> None:
    env = environment(TERM="xterm-256color", COLUMNS=str(width))
    done = run_on_terminal(APP, *line.split(), size=(24, width), env=env)
    assert done.code == 0
    assert done.err == b""
    for shown in done.out.decode().splitlines():
        assert cell_width(shown) <= width, (width, shown)


@pytest.mark.parametrize("width", WIDTHS)
def test_errors_on_a_terminal_go_to_stderr(width: int) -> None:
    env = environment(TERM="xterm-256color", COLUMNS=str(width))
    for line in (["percen", "%s"], ["long", "--wrod=%d"], ["percent"], ["x" * 500], ["%s%n"]):
        done = run_on_terminal(APP, *line, size=(24, width), env=env)
        assert done.code == 2
        assert done.out == b""
        assert is_clean(done.err)


VALUES = (
    *("%", "%s%d%n", "%(x)s", "{0}", "'", '"', "\\", "$HOME", "`id`", "[bold]x[/bold]", "[/]"),
    *("שלום", "\u202eabc", "日本語", "👩‍👧", "a\nb", "a\tb", "\x1b[31mred", "x" * 10_000, " ", ""),
)


@pytest.mark.parametrize("value", VALUES, ids=[repr(v)[:20] for v in VALUES])
def test_values_with_special_characters_are_kept_or_sanitized(value: str) -> None:
    shown = value.replace("\u202e", "").replace("\x1b[31m", "")
    done = run(APP, "odd-value", f"--value={value}", "--json")
    assert parse_json(done.out)["result"] == {"value": shown, "list": [shown, shown]}
    done = run(APP, "odd-value", f"--value={value}", "--jsonl")
    assert json.loads(done.out)["value"] == shown
    for mode in ("--plain", "--text"):
        done = run(APP, "odd-value", f"--value={value}", mode)
        assert (done.code, done.err.startswith(b"Warning: 3 ")) == (0, shown != value)
        assert shown != value or done.err == b""
        assert b"\x1b" not in done.out
    done = run(APP, "percent", f"--{value}x", "--json")
    assert done.code == 2
    assert parse_json(done.out)["ok"] is False


def test_plain_mode_escapes_line_breaks() -> None:
    out = run(APP, "odd-value", "--value", "a\nb\tc\rd", "--plain").out
    assert out.splitlines()[0] == b"value\ta\\nb\\tc\\rd"
    assert out.count(b"\n") == 2


def test_non_ascii_names_are_accepted() -> None:
    done = run(APP, "café-%s", "--naïve", "3", "--größe=ö", "--json")
    found = parse_json(done.out)
    assert found["result"] == {"naïve": 3, "größe": "ö"}
    assert found["meta"]["tool"] == "text-layout.café-%s"
    assert run(APP, "café-%s", "--naive", "3", "--json").code == 2


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_agent_help_and_schema_are_printed(command: str) -> None:
    assert run(APP, *command.split(), "--help-agent").code == 0
    done = run(APP, *command.split(), "--schema")
    assert done.code == 0
    parse_json(done.out)
