"""The expiry of an invocation's time limit."""

from __future__ import annotations

import json

import pytest

from tooli import Tooli
from tooli.cli import CommandOutput, read_invocation, timeout_exit
from tooli.cli.process import Deadline
from tooli.cli.timeout_exit import handle_alarm
from tooli.errors import TimeoutExceeded


class Exited(Exception):
    """Raised instead of ending the process."""


@pytest.fixture(autouse=True)
def no_real_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_exited(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr("os._exit", raise_exited)
    monkeypatch.setattr(timeout_exit, "kill_descendants", lambda _: 0)


def make(app: Tooli, mode: str) -> tuple[Deadline, CommandOutput]:
    invocation = read_invocation(app, ["price", "x", "-o", mode, "--timeout", "3"], "shop", False)
    line = invocation.line
    deadline = Deadline(line.tool, line.options["timeout"], False, lambda _: None)
    return deadline, CommandOutput(invocation)


def test_first_alarm_interrupts_the_function(shop: Tooli) -> None:
    deadline, output = make(shop, "json")
    with pytest.raises(TimeoutExceeded):
        handle_alarm(deadline, output)


@pytest.mark.parametrize("mode", ["json", "yaml", "jsonl"])
def test_second_alarm_writes_the_error_and_exits(
    shop: Tooli, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    deadline, output = make(shop, mode)
    output.take_stdout()
    deadline.count_alarm()
    with pytest.raises(Exited, match="50"):
        handle_alarm(deadline, output)
    output.release()
    out = capsys.readouterr().out
    if mode == "yaml":
        assert out.startswith("ok: false\n")
    else:
        assert json.loads(out)["ok"] is False


def test_text_mode_reports_on_stderr(shop: Tooli, capsys: pytest.CaptureFixture[str]) -> None:
    deadline, output = make(shop, "text")
    deadline.count_alarm()
    with pytest.raises(Exited):
        handle_alarm(deadline, output)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")


def test_nothing_is_written_after_an_answer(
    shop: Tooli, capsys: pytest.CaptureFixture[str]
) -> None:
    deadline, output = make(shop, "json")
    output.take_stdout()
    output.emit(b"{}")
    handle_alarm(deadline, output)  # the process gets time to exit after the first alarm
    with pytest.raises(Exited):
        handle_alarm(deadline, output)
    output.release()
    captured = capsys.readouterr()
    assert captured.out == "{}\n"
    assert captured.err == "The process did not end within 3 s and was stopped.\n"


def test_answer_with_a_slow_reader_is_not_interrupted(shop: Tooli) -> None:
    deadline, output = make(shop, "json")
    output.take_stdout()
    assert output.guard is not None
    output.guard.is_incomplete = True
    handle_alarm(deadline, output)
    output.release()
    assert deadline.count_alarm() == 1
