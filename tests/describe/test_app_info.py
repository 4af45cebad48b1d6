"""The description of an app that documents are rendered from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.describe.apps import make

from tooli import Tooli
from tooli.describe.app_info import collect_app_info

MODULE = "from tooli import Tooli\n_private = cli = Tooli('shop')\ncli.command('a')(lambda: None)\n"


def test_visible_tools_and_texts() -> None:
    info = collect_app_info(make())
    assert (info.name, info.version) == ("My tool", "1.2")
    assert info.description == 'Finds "files",\nand more.'
    assert [tool.key for tool in info.tools] == ["find", "digest", "wipe"]
    assert info.sections == {"Gotchas": "Mind the `gap`."}


def test_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop_module  # type: ignore[import-not-found]

    assert collect_app_info(shop_module.cli).import_path == "shop_module:cli"
    del sys.modules["shop_module"]


def test_app_that_cannot_be_imported() -> None:
    assert collect_app_info(Tooli("local")).import_path is None


def test_script(tmp_path: Path) -> None:
    script_globals = {"__name__": "__main__", "__file__": str(tmp_path / "tool.py")}
    exec(compile(MODULE, "tool.py", "exec"), script_globals)
    assert collect_app_info(script_globals["cli"]).import_path == "tool:cli"  # type: ignore[arg-type]
