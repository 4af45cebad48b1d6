"""tooli registry: what it finds, and what it does not start."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.sources.source_home import SourceHome

PACKAGE = """
from tooli import Tooli

app = Tooli("stock")


@app.command()
def count(item: str) -> int:
    \"\"\"Count an item.\"\"\"
    return len(item)
"""


@pytest.fixture
def home(tmp_path: Path) -> SourceHome:
    return SourceHome(tmp_path)


@pytest.fixture
def site(home: SourceHome) -> str:
    """A folder with two installed packages: one has an app, the other one is broken."""
    folder = home.folder / "site"
    info = folder / "stock-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / "stock_app.py").write_text(PACKAGE)
    (folder / "bad_app.py").write_text("raise ValueError('broken')\n")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: stock\nVersion: 1.2\nSummary: Counts what is in stock.\n"
    )
    (info / "entry_points.txt").write_text(
        "[tooli.apps]\nstock = stock_app:app\nbad = bad_app:app\n"
    )
    return str(folder)


def add_server(home: SourceHome) -> Path:
    """Register a server that writes a file if it is started."""
    started = home.folder / "started"
    code = f"open({str(started)!r}, 'w')"
    entry = {"command": sys.executable, "args": ["-c", code], "env": {"API_KEY": "hunter2"}}
    other = {"url": "https://h.example/mcp?token=hunter2"}
    settings = {"mcpServers": {"github\x1b[2J": entry, "web": other}}
    (home.folder / ".mcp.json").write_text(json.dumps(settings))
    (home.folder / ".cursor").mkdir()
    (home.folder / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"web": other}}))
    return started


def test_list_has_all_origins(home: SourceHome, site: str) -> None:
    started = add_server(home)
    home("adopt", "desk", "files:desk")
    rows = home("registry", "list", PYTHONPATH=site)["result"]
    found = {row["name"]: row for row in rows}
    assert [row["origin"] for row in rows] == ["kept", "installed", "installed", "agent", "agent"]
    assert found["@stock"]["source"] == "stock_app:app"
    assert found["@stock"]["where"] == "stock 1.2"
    assert found["@stock"]["description"] == "Counts what is in stock."
    assert found["web"]["where"] == ".mcp.json (claude-code), .cursor/mcp.json (cursor)"
    assert found["web"]["source"] == "'mcp:https://h.example/mcp?token=[redacted]'"
    text = json.dumps(rows)
    assert "hunter2" not in text and "\\u001b" not in text
    assert not started.exists()


def test_show(home: SourceHome, site: str) -> None:
    started = add_server(home)
    home("adopt", "desk", "files:desk")
    (kept,) = home("registry", "show", "@desk")["result"]
    assert kept["tool_count"] == 2 and kept["tools"][0].startswith("list-orders(limit")
    (installed,) = home("registry", "show", "stock", PYTHONPATH=site)["result"]
    assert installed["tools"] == ["count(item: str) -> int  # Count an item."]
    (bad,) = home("registry", "show", "bad", PYTHONPATH=site)["result"]
    assert "broken" in bad["problem"]
    names = [row["name"] for row in home("registry", "list")["result"] if row["origin"] == "agent"]
    (server,) = home("registry", "show", names[0])["result"]
    assert server["env"] == ["API_KEY"] and not started.exists()
    missing = home("registry", "show", "desq")["error"]
    assert (missing["code"], missing["field"]) == ("E3010", "name")
    assert "did you mean 'desk'" in missing["message"]


def test_installed_apps_have_names(home: SourceHome, site: str) -> None:
    assert home("run", "@stock", "count", "tea", PYTHONPATH=site)["result"] == 3
    error = home("tools", "@stok", PYTHONPATH=site)["error"]
    assert (error["code"], error["message"]) == (
        "E3010",
        "No source is kept under the name 'stok'; did you mean 'stock'?",
    )


def test_search(home: SourceHome, site: str) -> None:
    home("adopt", "desk", "files:desk")
    for query, expected in (
        ("cancelling orders", "@desk"),
        ("stock", "@stock"),
        ("desk", "@desk"),
    ):
        rows = home("registry", "search", *query.split(), PYTHONPATH=site)["result"]
        assert rows[0]["name"] == expected, query
    assert home("registry", "search", "zebra")["result"] == []


@pytest.mark.skipif(os.name == "nt", reason="programs are scripts with `#!`")
def test_programs_are_run_only_when_asked(home: SourceHome) -> None:
    folder = home.folder / "bin"
    folder.mkdir()
    program = folder / "stock"
    answer = '{"name":"stock","version":"2","description":"Stock.","commands":[{"name":"count"}]}'
    program.write_text(f"#!{sys.executable}\nimport sys\nprint({answer!r}, *sys.argv[2:])\n")
    program.chmod(0o755)
    assert home("registry", "list", PATH=str(folder))["result"] == []
    flags = ("--programs", "--unconfined")
    (row,) = home("registry", "search", "count", *flags, PATH=str(folder))["result"]
    assert row == {
        "name": "stock",
        "origin": "program",
        "source": f"exe:{program}",
        "where": str(program),
        "description": "Stock.",
    }
    (shown,) = home("registry", "show", "stock", *flags, PATH=str(folder))["result"]
    assert (shown["version"], shown["tools"]) == ("2", ["count"])
