from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.providers.programs.sample_programs import SHOP, provide, tools_by_key, write

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.providers import CLIProvider
from tooli.providers.provider import UNKNOWN_EFFECTS


@pytest.fixture(autouse=True)
def keep_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write(tmp_path / "shop", SHOP)


def call(app: Tooli, name: str, **arguments: Any) -> Any:
    return app.options(yes=True).call(name, **arguments)


def test_groups_and_their_options(shop: Path) -> None:
    app, provider = provide(shop)
    tools = tools_by_key(provider)
    assert set(tools) == {"order", "db.run", "db.login", "db.load"}
    properties: Any = (tools["order"].schema or {})["properties"]
    assert list(properties) == [
        *("item", "amount", "gift", "verbose", "label", "region", "global_verbose")
    ]
    order = call(app, "x.order", item="tea", region="us", gift=False, verbose=True, label=["a", -1])
    assert order.result == "us tea 1 False True ('a', -1)"
    assert call(app, "x.db.run").result == "all is well"


def test_secrets_do_not_appear(shop: Path) -> None:
    app, provider = provide(shop)
    login = tools_by_key(provider)["db.login"]
    assert login.may_have_secrets
    assert (login.schema or {})["required"] == ["password"]
    result = call(app, "x.db.login", password="hunter2secret")
    assert result.to_dict()["result"] == "root *** --user=root"  # and not in its argv


def test_choice_of_commands(shop: Path) -> None:
    chosen = CLIProvider(str(shop), only=["db.*", "nope"], exclude="db.login")
    assert set(tools_by_key(chosen)) == {"db.run", "db.load"}
    assert chosen.problems == {"nope": "only='nope': the program has no such command"}
    hidden = CLIProvider(str(shop), only="db.wait")
    assert tools_by_key(hidden)["db.wait"].deprecated
    effects = CLIProvider(str(shop), annotations={"db.*": ReadOnly, "order": UNKNOWN_EFFECTS})
    tools = tools_by_key(effects)
    assert tools["db.load"].behavior == ReadOnly and tools["order"].behavior.destructive
    everything = tools_by_key(CLIProvider(str(shop), annotations=ReadOnly))
    assert {tool.behavior for tool in everything.values()} == {ReadOnly}
