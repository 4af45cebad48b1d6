"""Compare the answers of all interfaces."""

from __future__ import annotations

import pytest
from tests.testing.shop import make_app

from tooli import Context, Tooli
from tooli.testing import (
    Case,
    Interface,
    InterfaceResponse,
    assert_parity,
    interfaces,
    parity,
    register_interface,
)

# ------------------------------------------------------------------ parity


def test_every_interface() -> None:
    names = [each.name for each in interfaces(make_app())]
    python, lines = ["call", "acall", "stream", "astream"], ["cli", "jsonl", "typer"]
    assert names == [*python, *lines, "http", "http-lines", "mcp", "mcp-stateless"]


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


def test_difference_names_the_interfaces() -> None:
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


def test_case_without_interface_fails() -> None:
    with pytest.raises(AssertionError, match="no interface accepts"):
        assert_parity(make_app(), Case("buy", argv=["x"], skip={"cli": "for no reason"}))


def test_register_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "_INTERFACES", list(parity._INTERFACES))

    @register_interface
    class Wrong(Interface):
        name, surface = "wrong", "wrong"

        def send_case(self, case: Case) -> InterfaceResponse:
            return InterfaceResponse({"ok": True, "result": "nonsense"}, 0)

    with pytest.raises(AssertionError, match=r"\+\+\+ wrong"):
        assert_parity(make_app(), Case("count", {"n": 1}))
    assert_parity(make_app(), Case("count", {"n": 1}, skip={"wrong": "it is"}))


def test_exit_codes_are_compared() -> None:
    with_code = parity._difference(
        interfaces(make_app())[0],
        InterfaceResponse({"ok": True}, 0),
        interfaces(make_app())[4],
        InterfaceResponse({"ok": True}, 1),
    )
    assert "exit code: 0 (call), 1 (cli)" in with_code
