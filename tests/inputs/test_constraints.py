"""Constraints of parameters, and control characters in the arguments of agents."""

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


def make() -> Tooli:
    app = Tooli("notes")

    @app.command()
    def get(id: Annotated[str, Identifier]) -> str:
        """Get one."""
        return id

    @app.command()
    def say(text: str, more: list[str] = []) -> str:  # noqa: B006
        """Say it."""
        return text

    @app.command()
    def keep(note: Note) -> str:
        """Keep it."""
        return note.text

    @app.command()
    def hold(note: Slotted) -> str:
        """Hold it."""
        return note.text

    @app.command()
    def raw(text: Annotated[str, Verbatim]) -> str:
        """Say it, whatever it is."""
        return text

    @app.command()
    def path(file: Path) -> str:
        """Any path."""
        return str(file)

    return app


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make()


ODD = ["a\x1b[31mb", "a\0b", "a\x07", "\x7f", "a\x9bb"]


@pytest.mark.parametrize("odd", ODD)
def test_control_characters_of_agents(app: Tooli, odd: str) -> None:
    """An error on every interface that a model may use; a person may type them."""
    asked = app.options(caller="langchain").call("say", text=odd)
    assert asked.error is not None
    assert (asked.error.code, asked.error.field) == ("E1030", "text")
    assert odd not in asked.error.message
    assert app.call("say", text=odd).ok
    if "\0" not in odd:
        done = invoke(app, "say", odd, env=AGENT, mode="json")
        assert done.error is not None
        assert done.error["code"] == "E1030"
        assert invoke(app, "say", odd, mode="json").ok


@pytest.mark.parametrize("surface", ["mcp", "http"])
def test_callers_of_servers_are_checked(app: Tooli, surface: str) -> None:
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
def test_control_characters_in_nested_values(
    app: Tooli, tool: str, arguments: dict[str, Any], field: str
) -> None:
    error = app.options(caller="x").call(tool, **arguments).error
    assert error is not None
    assert (error.code, error.field) == ("E1030", field)


def test_control_characters_in_json_input(app: Tooli) -> None:
    for words in (
        ("keep", '{"text": "a\\u001bb"}'),
        ("--input", '{"note": {"text": "a\\u001bb"}}', "keep"),
    ):
        done = invoke(app, *words, env=AGENT, mode="json")
        assert done.error is not None, done.stdout
        assert done.error["code"] == "E1030"


@pytest.mark.parametrize(
    "fine",
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
def test_valid_texts(app: Tooli, fine: str) -> None:
    assert app.options(caller="x").call("say", text=fine).unwrap() == fine


def test_verbatim_accepts_any_text(app: Tooli) -> None:
    assert app.options(caller="x").call("raw", text="\x1b[0m").unwrap() == "\x1b[0m"


@pytest.mark.parametrize(
    "wrong",
    [
        *("../x", "..", "a/../b", "a\\..\\b", "a%2fb", "a%2Fb", "%2e%2e/x", "a%5cb", "a%252fb"),
        *("a?b=c", "a#b", "a\\b", "/a", "a/", "", " ", "a\x1bb", "a%00"),
    ],
)
def test_invalid_identifiers(app: Tooli, wrong: str) -> None:
    """They are invalid for every caller."""
    error = app.call("get", id=wrong).error
    assert error is not None
    assert (error.code, error.field) == ("E1030", "id")


@pytest.mark.parametrize(
    "right", ["a", "owner/repo", "a..b", "v1.2", "a-b_c.d", "naïve", "100%", "a b"]
)
def test_valid_identifiers(app: Tooli, right: str) -> None:
    assert app.call("get", id=right).unwrap() == right


@pytest.fixture
def rooted(tmp_path: Path) -> Tooli:
    root = tmp_path / "data"
    root.mkdir()
    (root / "in.txt").write_text("inside")
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "secret.txt").write_text("outside")
    (tmp_path / "data-too").mkdir()
    (tmp_path / "data-too" / "x").write_text("beside")
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
        *("data/../secret.txt", "secret.txt", "data/out/secret.txt", "data-too/x", "/etc/passwd"),
        "data/./../secret.txt",
    ],
)
def test_paths_outside_the_root(rooted: Tooli, tmp_path: Path, monkeypatch, tool, escape) -> None:
    monkeypatch.chdir(tmp_path)
    error = rooted.call(tool, file=escape).error
    assert error is not None
    assert error.field == "file"
    assert error.code == "E1031" or (escape == "/etc/passwd" and error.code == "E1003")


@pytest.mark.parametrize("escape", ["data\\..\\..\\x", "data/%2e%2e/secret.txt", "data/..%2fx"])
def test_encoded_paths_outside_the_root(rooted: Tooli, tmp_path: Path, monkeypatch, escape) -> None:
    monkeypatch.chdir(tmp_path)
    error = rooted.call("word", file=escape).error
    assert error is not None
    assert error.code in ("E1030", "E1031")


def test_paths_inside_the_root(rooted: Tooli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rooted.call("path", file="data/new/er").ok
    assert rooted.call("read", file="data/in.txt").unwrap() == "inside"
    assert rooted.call("write", file="data/new").ok
    assert invoke(rooted, "read", "-", input="piped", mode="json").result == "piped"
    error = rooted.call("several", files=["data/in.txt", "secret.txt"]).error
    assert error is not None
    assert error.code == "E1031"


def test_a_url_is_outside_every_root(rooted: Tooli) -> None:
    error = rooted.call("read", file="http://example.com/x").error
    assert error is not None
    assert error.code == "E1031"
