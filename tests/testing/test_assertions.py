"""Compare the answers of all interfaces, check examples and snapshots."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from tests.testing.shop import make_app

from tooli import Context, Tooli
from tooli.annotations import Destructive
from tooli.errors import DefinitionError
from tooli.testing import (
    Case,
    InterfaceResponse,
    assert_envelope_snapshot,
    assert_examples,
    assert_help_snapshot,
    assert_parity,
    assert_schema_snapshot,
    assertions,
    interfaces,
    invoke,
)

# ------------------------------------------------------------------ parity


def test_assert_parity_returns_the_common_envelope() -> None:
    envelope = assert_parity(make_app(), Case("buy", {"item": "tea", "count": 2}))
    assert envelope == {
        "ok": True,
        "result": {"item": "tea", "count": 2},
        "meta": {"tool": "shop.buy", "version": "1.0"},
    }


def test_options_are_sent_through_every_interface() -> None:
    refused = assert_parity(make_app(), Case("burn"))
    assert refused["error"]["code"] == "E1010"
    assert assert_parity(make_app(), Case("burn", options={"yes": True}))["result"] == "ash"
    planned = assert_parity(make_app(), Case("burn", options={"dry_run": True}))
    assert planned["meta"]["dry_run"] is True


def test_failed_parity_names_the_different_interfaces() -> None:
    app = Tooli("split")

    @app.command()
    def where(ctx: Context) -> str:
        return ctx.caller.surface

    with pytest.raises(AssertionError) as caught:
        assert_parity(app, Case("where"))
    text = str(caught.value)
    assert "--- call" in text
    assert "+++ cli" in text
    assert '-  "result": "python"' in text
    assert '+  "result": "cli"' in text
    assert "+++ acall" not in text


def test_skipped_interface_is_not_compared() -> None:
    app = make_app()
    case = Case("say", {"text": "hi"}, skip={"python": "it prints"})
    assert assert_parity(app, case)["result"] == "hi"


def test_argv_is_sent_to_command_lines_only() -> None:
    case = Case("buy", argv=["tea", "--count=2"])
    assert assert_parity(make_app(), case)["result"] == {"item": "tea", "count": 2}


def test_case_that_no_interface_accepts_fails() -> None:
    with pytest.raises(AssertionError, match="no interface accepts"):
        assert_parity(make_app(), Case("buy", argv=["x"], skip={"cli": "for no reason"}))


def test_exit_codes_are_compared() -> None:
    with_code = assertions._difference(
        interfaces(make_app())[0],
        InterfaceResponse({"ok": True}, 0),
        interfaces(make_app())[4],
        InterfaceResponse({"ok": True}, 1),
        "buy",
    )
    assert "exit code: 0 (call), 1 (cli)" in with_code


# ------------------------------------------------------------------ snapshots


def test_missing_snapshot_fails_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="TOOLI_UPDATE_SNAPSHOTS=1"):
        assert_schema_snapshot(make_app(), tmp_path / "schema.json")


def test_written_snapshots_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        Case("buy", {"item": "tea"}),
        Case("buy", {"item": Path("x")}, {"dry_run": True}),
        Case("buy", {"item": "moon"}),
        Case("buy", argv=["a", "b"]),
    ]

    def check(**update: bool) -> None:
        assert_schema_snapshot(make_app(), tmp_path / "deep" / "schema.json", **update)
        assert_schema_snapshot(make_app(), tmp_path / "mcp.json", form="mcp", **update)
        assert_envelope_snapshot(make_app(), cases, tmp_path / "envelopes.json", **update)
        assert_help_snapshot(make_app(), tmp_path / "help.txt", **update)

    check(update=True)
    check()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TOOLI_OUTPUT", "text")
    check()
    (tmp_path / "help.txt").unlink()
    monkeypatch.setenv("TOOLI_UPDATE_SNAPSHOTS", "1")
    check()
    assert "$ shop buy --help-agent\nbuy <item:str>" in (tmp_path / "help.txt").read_text()
    assert "duration_ms" not in (tmp_path / "envelopes.json").read_text()


def test_changed_schema_is_shown_as_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    assert_schema_snapshot(make_app(), path, update=True)
    app = make_app()

    @app.command()
    def more(extra: int) -> int:
        return extra

    with pytest.raises(AssertionError, match=r'\n\+ .*"name": "more"'):
        assert_schema_snapshot(app, path)


def test_help_snapshot_includes_groups(tmp_path: Path) -> None:
    app, inner = make_app(), make_app()
    app.add_typer(inner, name="inner")
    assert_help_snapshot(app, tmp_path / "help.txt", update=True)
    pages = (tmp_path / "help.txt").read_text()
    assert "$ shop inner --help --plain\n" in pages
    assert pages.index("$ shop inner --help-agent") < pages.index("$ shop inner buy --help-agent")


# ------------------------------------------------------------------ examples


def test_valid_examples_pass() -> None:
    assert_examples(make_app())


def test_examples_are_not_run() -> None:
    app = Tooli("bomb")
    ran: list[int] = []

    @app.command(annotations=Destructive, examples=[{"args": ["--", "-1"], "description": "d"}])
    def explode(n: int, dry_run: Annotated[bool, typer.Option()] = False) -> int:
        ran.append(n)
        return n

    assert_examples(app)
    assert not ran


@pytest.mark.parametrize(
    ("example", "complaint"),
    [
        ({"args": ["tea", "--cuont", "2"], "description": "d"}, "cuont"),
        ({"args": ["tea", "--count", "two"], "description": "d"}, "E1003"),
        ({"args": [], "description": "d"}, "E1002"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_invalid_examples_fail(example: Any, complaint: str, alone: bool) -> None:
    app = Tooli("bad")

    @app.command(examples=[example])
    def buy(item: str, count: int = 1) -> str:
        return item

    if not alone:
        app.command("other")(buy)
    with pytest.raises(AssertionError, match=complaint):
        assert_examples(app)


@pytest.mark.parametrize(
    "example", [{"args": "tea", "description": "d"}, {"description": "d"}, "tea"]
)
def test_malformed_example_is_a_definition_error(example: Any) -> None:
    app = Tooli("bad")
    with pytest.raises(DefinitionError, match="example"):

        @app.command(examples=[example])
        def buy(item: str, count: int = 1) -> str:
            return item


def test_invoke_does_not_freeze_the_garbage_collector() -> None:
    app = Tooli("one")

    @app.command()
    def add(a: int, b: int) -> int:
        return a + b

    before = gc.get_freeze_count()
    for mode in ("json", "jsonl", "text"):
        assert invoke(app, "1", "2", mode=mode).ok
    assert_parity(app, Case("add", {"a": 1, "b": 2}))
    assert gc.get_freeze_count() <= before
    assert gc.isenabled()
