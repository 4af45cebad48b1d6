"""Messages of a server go to stderr, or to the JSON log."""

from __future__ import annotations

import pytest

from tooli.serving import log_setup
from tooli.serving.server_log import report


def test_message_is_written_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    report("shop is served")
    assert capsys.readouterr().err == "shop is served\n"


def test_message_is_written_to_the_json_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []

    def log_as_json(message: str) -> bool:
        messages.append(message)
        return True

    monkeypatch.setattr(log_setup, "log_as_json", log_as_json)
    report("shop is served")
    assert capsys.readouterr().err == ""
    assert messages == ["shop is served"]
