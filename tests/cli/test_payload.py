"""Arguments from `--input` and `--null`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tooli import SecretInput, Tooli
from tooli.cli.payload import read_payload

Answer = Callable[..., tuple[int, str, str]]


class Stdin(io.StringIO):
    """A text stdin with a binary buffer."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data.decode())
        self.buffer = io.BytesIO(data)


def result_of(answer: Answer, *argv: str, **more: Any) -> Any:
    code, out, _ = answer(*argv, "--json", **more)
    assert code == 0, out
    return json.loads(out)["result"]


def test_arguments_as_json_text(answer: Answer) -> None:
    result = result_of(answer, "price", "--input", '{"item": "pear", "count": 2}')
    assert result == {"item": "pear", "price": 6, "tags": []}


def test_option_on_the_line_wins(answer: Answer) -> None:
    assert result_of(answer, "price", "--input", '{"item": "fig"}', "--count", "3")["price"] == 9


def test_arguments_from_a_file(answer: Answer, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"item": "plum"}')
    assert result_of(answer, "price", "--input", f"@{tmp_path}/in.json")["item"] == "plum"


def test_arguments_from_stdin(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b'{"item": "lime"}'))
    assert result_of(answer, "price", "--input", "-")["item"] == "lime"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[1]", "--input is not a JSON object"),
        ("{", "--input is not valid JSON: "),
        ("@/no/such/file", "--input cannot be read: No such file or directory"),
        ("[" * 100_000, "--input is not valid JSON: "),
    ],
)
def test_invalid_payload_is_reported(source: str, message: str) -> None:
    payload, problems = read_payload(source)
    assert payload == {}
    assert [problem.code for problem in problems] == ["E1008"]
    assert problems[0].message.startswith(message)


def test_closed_stdin_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert read_payload("-")[1][0].message == "--input cannot be read: stdin is closed"


def test_null_adds_items_of_stdin(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Stdin("b\nb\0ç\0".encode()))
    assert result_of(answer, "names", "a", "--null") == ["a", "b\nb", "ç"]


def test_null_adds_items_to_a_list_of_strings_in_the_payload(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b"b\0"))
    assert result_of(answer, "names", "--null", "--input", '{"items": ["a"]}') == ["a", "b"]
    monkeypatch.setattr("sys.stdin", Stdin(b"b\0"))
    assert result_of(answer, "names", "--null", "--input", '{"items": null}') == ["b"]


@pytest.mark.parametrize("items", ["5", '"ab"', "[1, 2]", "0"])
def test_null_cannot_add_items_to_other_values_in_the_payload(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, items: str
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b"b\0"))
    payload = f'{{"items": {items}}}'
    code, out, _ = answer("names", "--null", "--json", "--input", payload)
    assert code == 2
    first = json.loads(out)["error"]["details"]["errors"][0]
    assert first["message"] == "--null: 'items' in --input must be a list of strings"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["price", "x", "--null"], "--null: the command takes no list of values"),
        (["names", "--null", "--input", "-"], "--null: stdin is not available"),
    ],
)
def test_null_needs_a_list_parameter_and_stdin(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, argv: list[str], message: str
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin(b"{}"))
    code, out, _ = answer(*argv, "--json")
    assert code == 2
    assert json.loads(out)["error"]["details"]["errors"][0]["message"] == message


def test_secret_on_the_command_line_must_be_a_location(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = Tooli("keys")

    @app.command()
    def login(key: SecretInput[str]) -> int:
        return len(key.reveal())

    @app.command()
    def other() -> None: ...

    monkeypatch.setenv("MY_KEY", "four")
    assert result_of(answer, "login", "--input", '{"key": "env:MY_KEY"}', app=app) == 4
    code, out, _ = answer("login", "--input", '{"key": "plain-value"}', "--json", app=app)
    assert code == 2
    assert "plain-value" not in out
    (tmp_path / "in.json").write_text('{"key": "plain"}')
    assert result_of(answer, "login", "--input", f"@{tmp_path}/in.json", app=app) == 5
