"""`-v` shows the traceback of an unexpected error, with the id that the answer contains."""

from __future__ import annotations

import json

import pytest

from tooli import NotFoundError, SecretInput, Tooli
from tooli.testing import invoke


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def fail(key: SecretInput[str] | None = None, deliberate: bool = False) -> str:
        if deliberate:
            raise NotFoundError("There is no x.")
        raise ValueError(f"key {key.reveal() if key else 'none'}")

    return app


@pytest.mark.parametrize("mode", ["--json", "--jsonl", "--plain"])
def test_traceback_is_on_stderr(mode: str) -> None:
    done = invoke(make_app(), "fail", mode, "-v")
    assert "Traceback (most recent call last)" in done.stderr
    assert "ValueError: key none" in done.stderr
    if mode != "--plain":
        request_id = json.loads(done.stdout)["meta"]["request_id"]
        assert f"request_id={request_id}" in done.stderr


def test_traceback_contains_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sesame-sesame")
    done = invoke(make_app(), "fail", "--key", "env:KEY", "--json", "-v")
    assert "ValueError: key ***" in done.stderr
    assert "sesame" not in done.stderr + done.stdout


def test_without_v_nothing_is_shown() -> None:
    done = invoke(make_app(), "fail", "--json")
    assert done.stderr == ""
    assert "request_id" not in done.stdout
    assert "ValueError: key none" in done.stdout  # on the command line the text is not masked


def test_error_of_the_author_has_no_traceback() -> None:
    done = invoke(make_app(), "fail", "--deliberate", "--json", "-v")
    assert done.stderr == ""
    assert "request_id" not in done.stdout
