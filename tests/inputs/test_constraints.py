"""Constraints of parameters, and control characters in arguments of agents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

from tooli import Identifier, Output, StdinOr, Tooli, Verbatim, Within
from tooli.core.call import Call, Caller
from tooli.pipeline.drivers import run
from tooli.testing import invoke

AGENT = {"CLAUDECODE": "1"}


class Note(pydantic.BaseModel):
    text: str
    tags: list[str] = []


@dataclass(slots=True)
class Slotted:
    text: str


def make_app() -> Tooli:
    app = Tooli("notes")

    @app.command()
    def get(id: Annotated[str, Identifier]) -> str:
        """Return the ID."""
        return id

    @app.command()
    def say(text: str, more: list[str] = []) -> str:  # noqa: B006
        """Return the text."""
        return text

    @app.command()
    def keep(note: Note) -> str:
        """Return the text of a model."""
        return note.text

    @app.command()
    def hold(note: Slotted) -> str:
        """Return the text of a dataclass."""
        return note.text

    @app.command()
    def raw(text: Annotated[str, Verbatim]) -> str:
        """Return any text."""
        return text

    @app.command()
    def path(file: Path) -> str:
        """Return the path."""
        return str(file)

    return app


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make_app()


CONTROL_TEXTS = ["a\x1b[31mb", "a\0b", "a\x07", "\x7f", "a\x9bb"]


@pytest.mark.parametrize("text", CONTROL_TEXTS)
def test_control_characters_from_agents_are_rejected(app: Tooli, text: str) -> None:
    """They are an error if the caller may be an agent. A person may type them."""
    result = app.options(caller="langchain").call("say", text=text)
    assert result.error is not None
    assert (result.error.code, result.error.field) == ("E1030", "text")
    assert text not in result.error.message
    assert app.call("say", text=text).ok
    if "\0" not in text:
        done = invoke(app, "say", text, env=AGENT, mode="json")
        assert done.error is not None
        assert done.error["code"] == "E1030"
        assert invoke(app, "say", text, mode="json").ok


@pytest.mark.parametrize("surface", ["mcp", "http"])
def test_control_characters_from_servers_are_rejected(app: Tooli, surface: str) -> None:
    tool: Any = app.find("say")
    from tooli.core.call import DEFAULT_OPTIONS

    caller = Caller(surface, maybe_agent=True)
    call, stages = app.prepare(Call(tool, {"text": "a\x1bb"}, caller, [], DEFAULT_OPTIONS))
    assert run(call, stages).error.code == "E1030"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("say", {"text": "x", "more": ["ok", "a\x1b"]}, "more.1"),
        ("keep", {"note": {"text": "x", "tags": ["a", "\x07"]}}, "note.tags.1"),
        ("hold", {"note": {"text": "\x07"}}, "note.text"),
        ("path", {"file": "a\0b"}, "file"),
    ],
)
def test_control_characters_in_nested_values_are_rejected(
    app: Tooli, tool: str, arguments: dict[str, Any], field: str
) -> None:
    error = app.options(caller="x").call(tool, **arguments).error
    assert error is not None
    assert (error.code, error.field) == ("E1030", field)


def test_control_characters_in_json_input_are_rejected(app: Tooli) -> None:
    for words in (
        ("keep", '{"text": "a\\u001bb"}'),
        ("--input", '{"note": {"text": "a\\u001bb"}}', "keep"),
    ):
        done = invoke(app, *words, env=AGENT, mode="json")
        assert done.error is not None, done.stdout
        assert done.error["code"] == "E1030"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\nb\tc\r\n",
        "naïve שלום \u200f\u202e 👩‍🚀",
        "../x",
        "%2e%2e%2f",
        "\u00a0",
        "$(rm -rf /)",
    ],
)
def test_other_characters_are_accepted(app: Tooli, text: str) -> None:
    assert app.options(caller="x").call("say", text=text).unwrap() == text


def test_verbatim_parameter_accepts_any_text(app: Tooli) -> None:
    assert app.options(caller="x").call("raw", text="\x1b[0m").unwrap() == "\x1b[0m"


@pytest.mark.parametrize(
    "identifier",
    [
        *("../x", "..", "a/../b", "a\\..\\b", "a%2fb", "a%2Fb", "%2e%2e/x", "a%5cb", "a%252fb"),
        *("a?b=c", "a#b", "a\\b", "/a", "a/", "", " ", "a\x1bb", "a%00"),
    ],
)
def test_invalid_identifiers_are_rejected(app: Tooli, identifier: str) -> None:
    """The identifiers are invalid for every caller."""
    error = app.call("get", id=identifier).error
    assert error is not None
    assert (error.code, error.field) == ("E1030", "id")


@pytest.mark.parametrize(
    "identifier", ["a", "owner/repo", "a..b", "v1.2", "a-b_c.d", "naïve", "100%", "a b"]
)
def test_valid_identifiers_are_accepted(app: Tooli, identifier: str) -> None:
    assert app.call("get", id=identifier).unwrap() == identifier


@pytest.fixture
def rooted(tmp_path: Path) -> Tooli:
    root = tmp_path / "data"
    root.mkdir()
    (root / "in.txt").write_text("inside")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "secret.txt").write_text("outside")
    (tmp_path / "data-other").mkdir()
    (tmp_path / "data-other" / "x").write_text("outside")
    app = Tooli("rooted")

    @app.command()
    def path(file: Annotated[Path, Within("data")]) -> str:
        return str(file)

    @app.command()
    def word(file: Annotated[str, Within("data")]) -> str:
        return file

    @app.command()
    def read(file: Annotated[StdinOr[str], Within("data")]) -> str:
        return file

    @app.command()
    def write(file: Annotated[Output, Within("data")]) -> str:
        file.write_text("x")
        return "ok"

    @app.command()
    def several(files: Annotated[list[Path], Within("data")]) -> int:
        return len(files)

    return app


@pytest.mark.parametrize("tool", ["path", "word", "read", "write"])
@pytest.mark.parametrize(
    "escape",
    [
        *("data/../secret.txt", "secret.txt", "data/out/secret.txt", "data-other/x", "/etc/passwd"),
        "data/./../secret.txt",
    ],
)
def test_paths_outside_root_are_rejected(
    rooted: Tooli, tmp_path: Path, monkeypatch, tool, escape
) -> None:
    monkeypatch.chdir(tmp_path)
    error = rooted.call(tool, file=escape).error
    assert error is not None
    assert error.field == "file"
    assert error.code == "E1031" or (escape == "/etc/passwd" and error.code == "E1003")


@pytest.mark.parametrize("escape", ["data\\..\\..\\x", "data/%2e%2e/secret.txt", "data/..%2fx"])
def test_encoded_paths_outside_root_are_rejected(
    rooted: Tooli, tmp_path: Path, monkeypatch, escape
) -> None:
    monkeypatch.chdir(tmp_path)
    error = rooted.call("word", file=escape).error
    assert error is not None
    assert error.code in ("E1030", "E1031")


def test_paths_inside_root_are_accepted(rooted: Tooli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rooted.call("path", file="data/new/er").ok
    assert rooted.call("read", file="data/in.txt").unwrap() == "inside"
    assert rooted.call("write", file="data/new").ok
    assert invoke(rooted, "read", "-", input="piped", mode="json").result == "piped"
    error = rooted.call("several", files=["data/in.txt", "secret.txt"]).error
    assert error is not None
    assert error.code == "E1031"


def test_url_is_outside_every_root(rooted: Tooli) -> None:
    error = rooted.call("read", file="http://example.com/x").error
    assert error is not None
    assert error.code == "E1031"
