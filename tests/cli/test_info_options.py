"""Options that describe the app: help, schema, version."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

import pytest

from tooli import Tooli
from tooli.testing import invoke

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture
def linked() -> Tooli:
    app = Tooli("linked", version="1")

    @app.command(handoffs=["nowhere", "second"])
    def first() -> str:
        """Go first."""
        return "1"

    @app.command()
    def second() -> str:
        """Go second."""
        return "2"

    return app


@pytest.mark.parametrize("argv", [["first", "--schema"], ["--schema"]])
def test_schema_leaves_out_unknown_handoffs(answer: Answer, linked: Tooli, argv: list[str]) -> None:
    code, out, err = answer(*argv, app=linked)
    document = json.loads(out)
    tool = document if argv[0] == "first" else document["commands"][0]
    assert code == 0
    assert [handoff["command"] for handoff in tool["handoffs"]] == ["second"]
    assert err.startswith("Warning: first: handoffs= names 'nowhere'")
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [["first", "--help-agent"], ["--help-agent"]])
def test_help_for_agents_leaves_out_unknown_handoffs(
    answer: Answer, linked: Tooli, argv: list[str]
) -> None:
    code, out, err = answer(*argv, app=linked)
    assert code == 0
    assert "nowhere" not in out
    assert "'nowhere'" in err


def test_command_that_cannot_be_loaded_is_left_out(answer: Answer, linked: Tooli) -> None:
    linked.lazy_command("no.such.module:fn", name="gone")
    _, out, err = answer("--schema", app=linked)
    assert [tool["name"] for tool in json.loads(out)["commands"]] == ["first", "second"]
    assert "Warning: gone is left out: " in err


def test_schema_of_a_group_contains_only_its_commands(answer: Answer, shop: Tooli) -> None:
    inner = Tooli("inner")

    @inner.command()
    def leaf() -> str:
        """A leaf."""
        return ""

    shop.add_typer(inner, name="inner")
    _, out, _ = answer("inner", "--schema")
    assert [tool["tool"] for tool in json.loads(out)["commands"]] == ["shop.inner.leaf"]


def test_schema_wins_over_help_and_version(answer: Answer) -> None:
    _, out, _ = answer("price", "--help", "--version", "--schema")
    assert json.loads(out)["tool"] == "shop.price"


def test_version(answer: Answer) -> None:
    assert answer("--version")[:2] == (0, "shop 2.0\n")
    _, out, _ = answer("--version", "--json")
    assert json.loads(out)["result"] == {"name": "shop", "version": "2.0"}


def test_app_without_version_reports_an_error(answer: Answer) -> None:
    code, out, _ = answer("--version", "--json", app=Tooli("bare"))
    assert code == 2
    assert json.loads(out)["error"]["message"] == "bare declares no version."


def test_help_in_a_pipe_is_plain(answer: Answer) -> None:
    code, out, _ = answer("price", "--help")
    assert code == 0
    assert out.startswith("Usage: shop price [OPTIONS] ITEM\n")


def test_help_of_a_builtin_command_in_a_pipe_is_plain(answer: Answer) -> None:
    code, out, _ = answer("mcp", "serve", "--help")
    assert code == 0
    assert "Usage: " in out.splitlines()[0]
    assert "╭" not in out


def test_help_of_a_builtin_command_for_an_agent_is_compact(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_CALLER", "my-agent")
    assert answer("mcp", "serve", "--help")[1].startswith("mcp serve [--transport")


def test_help_of_an_agent_is_compact(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert answer("price", "--help")[1] == answer("price", "--help-agent")[1]


def test_explicit_mode_wraps_help_in_an_envelope(answer: Answer) -> None:
    _, text, _ = answer("price", "--help-agent")
    _, out, _ = answer("price", "--help-agent", "--json")
    assert json.loads(out)["result"] == text.removesuffix("\n")


def test_unknown_command_is_an_error_even_with_help(answer: Answer) -> None:
    code, out, _ = answer("prize", "--help", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "E1001"


def test_agent_manifest_and_agent_bootstrap_name_the_app(answer: Answer) -> None:
    _, out, _ = answer("--agent-manifest")
    assert json.loads(out)["name"] == "shop"
    code, out, _ = answer("--agent-bootstrap")
    assert (code, "shop" in out) == (0, True)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["rows", "--schema", "bogus"], "E1007"),
        (["find", "--schema", "jsn"], "E1007"),
        (["find", "--schema=bogus"], "E1007"),
        (["--schema", "bogus"], "E1001"),
        (["find", "--schema", "bogus"], "E1007"),
        (["find", "--schema", "*.py"], None),
        (["find", "bogus", "--schema"], None),
        (["paint", "--schema", "red"], None),
        (["paint", "--schema", "blue"], "E1007"),
        (["rows", "--schema", "mcp"], None),
    ],
)
def test_unknown_format_of_a_schema_is_an_error(argv: list[str], code: str | None) -> None:
    app = Tooli("app")
    app.command("rows")(lambda: None)

    @app.command()
    def find(pattern: str) -> None: ...

    @app.command()
    def paint(color: Literal["red"]) -> None: ...

    done = invoke(app, *argv, mode="json")
    assert (done.exit_code, (done.error or {}).get("code")) == ((2, code) if code else (0, None))
