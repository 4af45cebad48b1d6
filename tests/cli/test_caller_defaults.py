"""Defaults that depend on the caller: colour, messages, size limits."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tooli import Tooli
from tooli.cli import CommandOutput, Invocation, read_invocation
from tooli.cli.caller_defaults import (
    apply_output_settings,
    compute_result_options,
    detect_caller,
)
from tooli.core.output_limits import OUTPUT_LIMITS

Answer = Callable[..., tuple[int, str, str]]


def read(app: Tooli, *argv: str) -> Invocation:
    return read_invocation(app, argv, "shop")


# ------------------------------------------------------------------ the caller


def test_session_id_is_read_without_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_SESSION_ID", "s1")
    caller, category = detect_caller(("shop",), maybe_agent=False, needs_checks=True)
    assert (caller.session, caller.name, category) == ("s1", None, None)


def test_agent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    caller, category = detect_caller(("shop",), maybe_agent=True, needs_checks=True)
    assert (caller.name, category, caller.maybe_agent) == ("claude-code", "ai_agent", True)
    caller, _ = detect_caller(("shop",), maybe_agent=True, needs_checks=False)
    assert not caller.maybe_agent


def test_ci_system_is_not_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    caller, category = detect_caller(("shop",), maybe_agent=True, needs_checks=True)
    assert (category, caller.maybe_agent) == ("ci_cd", False)


# ------------------------------------------------------------------ colour


@pytest.fixture
def color_variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, "")  # so that monkeypatch restores the variable after the test
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.parametrize(
    ("argv", "setting", "expected"),
    [
        (["--no-color"], "always", ("1", None)),
        ([], "never", ("1", None)),
        ([], "always", (None, "1")),
        ([], "auto", (None, None)),
    ],
)
def test_color_setting_sets_the_variables(
    shop: Tooli,
    color_variables: pytest.MonkeyPatch,
    argv: list[str],
    setting: str,
    expected: tuple[str | None, str | None],
) -> None:
    color_variables.setenv("TOOLI_COLOR", setting)
    assert apply_output_settings(CommandOutput(read(shop, "price", "x", *argv))) is None
    assert (os.environ.get("NO_COLOR"), os.environ.get("FORCE_COLOR")) == expected


def test_forced_color_wins_over_the_default_of_an_agent(
    shop: Tooli, color_variables: pytest.MonkeyPatch
) -> None:
    color_variables.setenv("CLAUDECODE", "1")
    color_variables.setenv("FORCE_COLOR", "1")
    apply_output_settings(CommandOutput(read(shop, "price", "x", "--text")))
    assert "NO_COLOR" not in os.environ


# ------------------------------------------------------------------ size limits


def test_no_limit_without_an_agent(shop: Tooli) -> None:
    invocation = read(shop, "names", "a", "--jsonl")
    assert compute_result_options(invocation, invocation.line.tool) is None


def test_limits_of_the_caller(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    invocation = read(shop, "names", "a", "--jsonl")
    options = compute_result_options(invocation, invocation.line.tool)
    assert options is not None
    assert options.caller_limit is OUTPUT_LIMITS["claude-code"]
    assert not options.has_explicit_size_limit


def test_size_limit_on_the_line_replaces_the_callers(
    shop: Tooli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    invocation = read(shop, "names", "a", "--max-bytes", "500")
    options = compute_result_options(invocation, invocation.line.tool)
    assert options is not None
    assert (options.max_bytes, options.max_tokens, options.caller_limit) == (500, None, None)
