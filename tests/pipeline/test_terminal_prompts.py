"""Prompts on the terminal, never on a stdin or stdout that carries data."""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
from typing import Any

import pytest
from tests.stages.stage_calls import make_call

from tooli import Context, DefinitionError, Tooli
from tooli.annotations import Destructive
from tooli.pipeline import terminal_prompts
from tooli.pipeline.terminal_prompts import ask_yes_no


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "default", "answer"),
    [
        ("y\n", False, True),
        ("YES\n", False, True),
        ("n\n", True, False),
        (" no \n", True, False),
        ("\n", True, True),
        ("\n", False, False),
        ("", True, True),
        ("maybe\nwhat\ny\n", False, True),
    ],
)
def test_typed_answer_is_returned(monkeypatch, capsys, typed, default, answer) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert ask_yes_no("Sure?", default=default) is answer
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Sure? [Y/n] " if default else "Sure? [y/N] ")


@pytest.mark.parametrize("stdin", [None, io.StringIO("y\n")], ids=["none", "pipe"])
def test_default_is_returned_without_a_terminal(monkeypatch, stdin) -> None:
    def no_terminal(*args, **kwargs):
        raise OSError("no terminal")

    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(terminal_prompts, "open", no_terminal, raising=False)
    assert ask_yes_no("Sure?", default=True)
    assert not ask_yes_no("Sure?", default=False)


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_controlling_terminal_is_used_if_stdin_is_not_a_terminal(monkeypatch, platform) -> None:
    shown, opened = [], []

    class Screen(io.StringIO):
        def write(self, text: str) -> int:
            shown.append(text)
            return len(text)

    def terminal(name, mode="r"):
        opened.append((name, mode))
        return Screen() if mode == "w" else io.StringIO("y\n")

    monkeypatch.setattr(sys, "stdin", io.StringIO("data"))
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(terminal_prompts, "open", terminal, raising=False)
    assert ask_yes_no("Sure?")
    assert shown == ["Sure? [y/N] "]
    devices = {"linux": ["/dev/tty", "/dev/tty"], "win32": ["CONOUT$", "CONIN$"]}
    assert opened == list(zip(devices[platform], ["w", "r"], strict=True))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
def test_user_answers_on_the_terminal_while_stdin_is_a_pipe() -> None:
    """`producer | tool`: stdin has the data, and the user answers on the terminal."""
    code = (
        "import fcntl, os, sys, termios\n"
        "os.setsid()\n"
        "fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)\n"
        "from tooli.pipeline.terminal_prompts import ask_yes_no\n"
        "print(ask_yes_no('Sure?'), sys.stdin.read())\n"
    )
    controller, terminal = os.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(terminal)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[terminal],
        )
        os.write(controller, b"y\n")
        out, _ = child.communicate(b"the data", timeout=30)
        assert out == b"True the data\n"
        shown = b""
        while b"Sure? [y/N]" not in shown and select.select([controller], [], [], 10)[0]:
            shown += os.read(controller, 1000)
        assert b"Sure? [y/N]" in shown
    finally:
        os.close(terminal)
        os.close(controller)


class TestAutoConfirm:
    @pytest.mark.parametrize(
        "keywords",
        [
            {"annotations": Destructive},
            {"requires_approval": True},
            {"human_in_the_loop": True},
            {"danger_level": "high"},
        ],
    )
    def test_auto_confirm_is_rejected_for_destructive_or_restricted_commands(
        self, keywords: dict[str, Any]
    ) -> None:
        with pytest.raises(DefinitionError, match="agent_auto_confirm is for harmless commands"):
            Tooli("t").command(agent_auto_confirm=True, **keywords)(lambda: None)

    def test_auto_confirm_applies_only_to_agents(self) -> None:
        app = Tooli("t")

        @app.command(agent_auto_confirm=True)
        def scan(ctx: Context) -> bool:
            return ctx.confirm("Scan all?")

        assert app.options(caller="claude-code").call("scan").unwrap() is True
        assert app.options(caller="human").call("scan").unwrap() is False
        assert app.call("scan").unwrap() is False

    def test_auto_confirm_does_not_apply_under_the_strict_policy(self) -> None:
        app = Tooli("t", security_policy="strict")

        @app.command(agent_auto_confirm=True, auth=[])
        def scan(ctx: Context) -> bool:
            return ctx.confirm("Scan all?")

        assert app.options(caller="claude-code").call("scan").unwrap() is False


def test_stdin_terminal_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert terminal_prompts.has_terminal()


def test_missing_terminal_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminal(*args: Any) -> Any:
        raise OSError("no terminal")

    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(os, "open", no_terminal)
    assert not terminal_prompts.has_terminal()


def test_ask_line_returns_the_line_or_raises_eof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("Ada\n"))
    assert terminal_prompts.ask_line("Name: ") == "Ada"
    with pytest.raises(EOFError):
        terminal_prompts.ask_line("Name: ")


class Stderr(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.mark.parametrize(
    ("term", "is_terminal", "is_reset"),
    [("xterm", True, True), ("xterm", False, False), ("dumb", True, False)],
)
@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Windows are not reset")
def test_terminal_is_reset_before_a_question(
    monkeypatch: pytest.MonkeyPatch, term: str, is_terminal: bool, is_reset: bool
) -> None:
    stderr = Stderr(is_terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", term)
    terminal_prompts.reset_terminal()
    assert stderr.getvalue().startswith("\x1b[0m") is is_reset


def test_closed_stderr_is_not_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Stderr(is_terminal=True)
    stderr.close()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    terminal_prompts.reset_terminal()


def test_nobody_is_asked_under_the_strict_policy() -> None:
    assert not terminal_prompts.can_ask_human(make_call(policy="strict"))
