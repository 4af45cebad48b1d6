"""Errors of a command line itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tooli import Tooli
from tooli.cli import CommandOutput, read_invocation
from tooli.cli.usage_errors import has_invalid_arguments, make_output_call, no_command_error

Answer = Callable[..., tuple[int, str, str]]


def error_of(answer: Answer, *argv: str) -> dict[str, Any]:
    code, out, _ = answer(*argv)
    assert code == 2
    return json.loads(out)["error"]


def test_unknown_output_mode_suggests_the_nearest(answer: Answer) -> None:
    error = error_of(answer, "price", "pear", "-o", "jsn")
    assert error["code"] == "E1007"
    assert error["message"].startswith("-o: 'jsn' is not one of auto, json")
    assert error["suggestion"]["fix"] == "Use json as 'output'."


@pytest.mark.parametrize("argv", [["price", "pear", "-o", "zzz"], ["-o", "zzz"]])
def test_unknown_output_mode_without_a_near_one_lists_all(answer: Answer, argv: list[str]) -> None:
    fix = error_of(answer, *argv)["suggestion"]["fix"]
    assert fix.startswith("Use one of auto, json, jsonl")
    assert fix.endswith("md as 'output'.")


def test_unknown_mode_in_the_environment(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_OUTPUT", "ymal")
    error = error_of(answer, "price", "pear")
    assert error["message"].startswith("TOOLI_OUTPUT: 'ymal' is not one of")
    assert error["suggestion"]["fix"] == "Use yaml as 'output'."


def test_unknown_mode_in_the_environment_is_an_error_even_if_a_file_sets_a_mode(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".tooli.yaml").write_text("output: json\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLI_CONFIG", raising=False)
    monkeypatch.setenv("TOOLI_OUTPUT", "ymal")
    assert error_of(answer, "price", "pear")["code"] == "E1007"
    assert answer("price", "pear", "--json")[0] == 0  # the line has priority


def test_invalid_option_value_says_what_to_do(answer: Answer) -> None:
    fix = error_of(answer, "price", "pear", "--timeout", "x", "--json")["suggestion"]["fix"]
    assert (
        fix == "Leave 'timeout' out, or correct it: --timeout must be a number of seconds above 0."
    )


def test_unknown_option_before_the_command_is_corrected(answer: Answer) -> None:
    error = error_of(answer, "--jsno", "price", "pear", "--json")
    assert error["code"] == "E1004"
    assert error["suggestion"]["fix"] == "Use --json."
    assert error["suggestion"]["argv"][-4:] == ["--json", "price", "pear", "--json"]


def test_only_the_unknown_option_is_corrected(answer: Answer) -> None:
    app, group = Tooli("shop"), Tooli("option")

    @group.command()
    def show() -> None: ...

    @group.command()
    def hide() -> None: ...

    app.add_typer(group, name="option")  # the word occurs in the message as well
    code, out, _ = answer("option", "--jsno", "show", "--json", app=app)
    assert code == 2
    argv = json.loads(out)["error"]["suggestion"]["argv"]
    assert argv[-4:] == ["option", "--json", "show", "--json"]


def test_unknown_output_mode_does_not_replace_another_argument(answer: Answer) -> None:
    error = error_of(answer, "-o", "jsn", "csv")
    assert error["suggestion"]["fix"] == "Use json as 'output'."
    assert "argv" not in error["suggestion"]


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["prize", "--json"], "E1001", "There is no command 'prize'; did you mean 'price'?"),
        (["--json"], "E1001", "No command was given."),
        (["--wrong", "--json"], "E1004", "There is no option --wrong"),
    ],
)
def test_line_without_a_valid_command_gets_a_suggestion(
    shop: Tooli, argv: list[str], code: str, message: str
) -> None:
    error = no_command_error(CommandOutput(read_invocation(shop, argv, "shop")))
    assert (error.code, error.message) == (code, message)
    assert error.suggestion is not None


def test_tool_name_without_a_command_is_the_app(shop: Tooli) -> None:
    call = make_output_call(CommandOutput(read_invocation(shop, ["--json"], "shop")))
    assert (call.tool.name, call.tool.version) == ("shop", "2.0")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [(["price", "pear"], False), (["price", "pear", "--count", "x"], True), (["price"], True)],
)
def test_missing_and_invalid_arguments_are_detected(
    shop: Tooli, argv: list[str], expected: bool
) -> None:
    invocation = read_invocation(shop, argv, "shop")
    assert invocation.line.tool is not None
    call, _ = invocation.prepare(invocation.line.tool, invocation.line.arguments)
    assert has_invalid_arguments(invocation, call) is expected


def test_internal_error_is_an_envelope(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no stages")

    monkeypatch.setattr("tooli.pipeline.drivers.run", fail)
    code, out, _ = answer("price", "pear", "--json")
    assert code == 70
    assert json.loads(out)["error"]["message"] == "RuntimeError: no stages"


@pytest.mark.parametrize("flags", [["-o", "yaml"], ["--output=yaml"], ["--tooli-output", "yaml"]])
def test_app_that_cannot_be_loaded_answers_in_the_requested_mode(
    answer: Answer, flags: list[str]
) -> None:
    app = Tooli("broken")
    app.lazy_command("no.such.module:fn", name="go")
    code, out, _ = answer("go", *flags, app=app)
    assert code
    assert out.startswith("ok: false\n")


def test_output_mode_after_two_dashes_is_an_argument(answer: Answer) -> None:
    app = Tooli("broken")
    app.lazy_command("no.such.module:fn", name="go")
    _, out, _ = answer("go", "--json", "--", "-o", "yaml", app=app)
    assert json.loads(out)["ok"] is False
