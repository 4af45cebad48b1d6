"""Sources of the program `tooli`: one app, reached in every way that there is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.integration.mcp.stdio_client import LAUNCHER_CODE, connect, launcher_command
from tests.sources.source_home import SourceHome

APP = """
from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.errors import NotFoundError

app = Tooli("shop", version="1.0", description="A shop.")


@app.command(annotations=ReadOnly)
def find(text: str, count: int = 1) -> list[str]:
    \"\"\"Find items.\"\"\"
    if text == "nothing":
        raise NotFoundError("There is no such item.")
    return [text] * count


@app.command()
def add(item: str) -> str:
    \"\"\"Add an item.\"\"\"
    return f"{item} is added"


if __name__ == "__main__":
    app()
"""
QUERIES = """
-- database: shop.db
-- name: find
-- Find items.
-- :text text
-- :count int = 1
SELECT :text AS name LIMIT :count;
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> SourceHome:
    home = SourceHome(tmp_path_factory.mktemp("home"))
    (home.folder / "market.py").write_text(APP)
    (home.folder / "shop.sql").write_text(QUERIES)
    code = "import sqlite3; sqlite3.connect('shop.db').execute('CREATE TABLE a (b)')"
    subprocess.run([sys.executable, "-c", code], cwd=home.folder, check=True)
    return home


@pytest.fixture(scope="module")
def url(home: SourceHome) -> Iterator[str]:
    """The URL of the app, which is served with its HTTP API and MCP."""
    with serve(home, "market.py", "--api") as base:
        yield base


class serve:
    """Run `tooli serve` over HTTP on a free port."""

    def __init__(self, home: SourceHome, *argv: str) -> None:
        command = [sys.executable, "-c", LAUNCHER_CODE, "serve", *argv, "--port", "0"]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=home.env, cwd=home.folder
        )

    def __enter__(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if " is served at " in line:
                return line.split()[-1].removesuffix("/mcp").removesuffix("/")
        raise AssertionError("the server has ended")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PROCESS_TIMEOUT)


SOURCES = {
    "app": ("market.py", ["find", "tea", "--count", "2"], "find", ["tea", "tea"]),
    "module": ("market:app", ["find", "tea"], "find", ["tea"]),
    "openapi": ("openapi:{url}/openapi.json", ["find", "--text", "tea"], "find", ["tea"]),
    "mcp-command": (
        "mcp:{python} market.py mcp serve",
        ["find", "--text", "tea", "--yes"],
        "find",
        ["tea"],
    ),
    "mcp-url": ("mcp:{url}/mcp", ["find", "--text", "tea", "--yes"], "find", ["tea"]),
    "tooli": ("tooli:{url}", ["find", "--text", "tea", "--yes"], "find", ["tea"]),
    "exe": ("exe:market.py", ["find", "tea", "--yes"], "find", ["tea"]),
    "sql": ("sql:shop.sql", ["find", "--text", "tea"], "find", [{"name": "tea"}]),
    "files": ("files:desk", ["list-orders", "--limit", "1"], "list_orders", [1]),
}


def read_source(kind: str, url: str) -> tuple[str, list[str], str, object]:
    text, argv, tool, result = SOURCES[kind]
    return text.format(url=url, python=sys.executable), argv, tool, result


@pytest.mark.parametrize("kind", SOURCES)
def test_command_line_of_a_source(home: SourceHome, url: str, kind: str) -> None:
    source, argv, _, result = read_source(kind, url)
    assert home("run", source, *argv)["result"] == result
    names = [tool["name"] for tool in home("tools", source)["result"]]
    assert argv[0] in names


@pytest.mark.parametrize("kind", ["openapi", "tooli"])
def test_documents_of_a_source(home: SourceHome, url: str, kind: str) -> None:
    source, argv, _, _ = read_source(kind, url)
    assert argv[0] in home.start("docs", "llms", source).stdout
    assert argv[0] in home.start("generate-skill", source).stdout
    assert home.start("export", source, "--target", "openai").returncode == 0


@pytest.mark.parametrize("kind", ["module", "openapi", "mcp-command", "sql"])
def test_name_of_a_source(home: SourceHome, url: str, kind: str) -> None:
    source, argv, _, result = read_source(kind, url)
    kept = home("adopt", kind, source, "--install", "--bin-dir", "bin")["result"]
    assert kept["tools"] >= 1
    assert home("run", f"@{kind}", *argv)["result"] == result
    done = subprocess.run(
        [kept["program"], *argv, "--json"],
        capture_output=True,
        cwd="/",
        env=home.env,
        timeout=PROCESS_TIMEOUT,
    )
    assert json.loads(done.stdout)["result"] == result


@pytest.mark.parametrize("kind", ["openapi", "mcp-command", "tooli", "exe", "sql", "files"])
def test_servers_of_a_source(home: SourceHome, url: str, kind: str) -> None:
    source, _, tool, result = read_source(kind, url)
    arguments: dict[str, Any] = {"limit": 1} if kind == "files" else {"text": "tea"}
    command = launcher_command(source)
    with connect(kind, command=command, env=home.env, cwd=home.folder) as client:
        assert tool in [listed["name"] for listed in client.result("tools/list")["tools"]]
        listed = next(t for t in client.result("tools/list")["tools"] if t["name"] == tool)
        is_safe = listed["annotations"].get("readOnlyHint")
        meta = {} if is_safe else {"io.tooli/options": {"yes": True}}
        answer = client.call(tool, arguments, **meta)
        content = answer.get("structuredContent") or json.loads(answer["content"][0]["text"])
        assert (content["result"] if "result" in content else content) == result
    with serve(home, source, "--api") as base:
        query = {} if is_safe else {"yes": "true"}
        path = tool.replace("_", "-")
        answer = httpx2.post(f"{base}/tools/{path}", json=arguments, params=query, timeout=60)
        assert answer.json()["result"] == result


def test_error_of_the_other_side(home: SourceHome, url: str) -> None:
    """The code of an error passes through another app over HTTP."""
    source = f"tooli:{url}"
    error = home("run", source, "find", "--text", "nothing", "--yes")["error"]
    assert (error["code"], error["message"]) == ("E3010", "There is no such item.")


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("openapi:http://127.0.0.1:1/openapi.json", ("E4040", "E4075")),
        ("mcp:http://127.0.0.1:1/mcp", ("E4040", "E4075")),
        ("tooli:http://127.0.0.1:1", ("E4040", "E4075")),
        ("mcp:no-such-program-here", ("E3010", "E4040")),
        ("mcp:{python} -c 'print(1)'", ("E4040",)),
        ("openapi:market.py", ("E1000", "E1065")),
        ("exe:no-such-program", ("E3010",)),
        ("files:missing", ("E3010",)),
        ("sql:missing.sql", ("E3010",)),
    ],
)
def test_source_that_cannot_be_used(home: SourceHome, source: str, codes: tuple[str, ...]) -> None:
    source = source.format(python=sys.executable)
    for argv in (["run", source, "find"], ["adopt", "broken", source]):
        error = home(*argv)["error"]
        assert error["code"] in codes, error
        target = source.partition(":")[2]
        assert source in error["message"] or target in error["message"] or error["suggestion"]
    assert all(row["name"] != "@broken" for row in home("registry", "list")["result"])


def test_kept_credentials_are_references(home: SourceHome, url: str) -> None:
    flags = ("--header", "X-Shop-Key=env:SHOP_KEY")
    home("adopt", "keyed", *flags, f"openapi:{url}/openapi.json", SHOP_KEY="hunter2")
    for path in (home.folder / ".config" / "tooli").iterdir():
        assert b"hunter2" not in path.read_bytes()
    argv = ("run", "@keyed", "find", "--text", "tea")
    assert home(*argv, SHOP_KEY="hunter2")["result"] == ["tea"]
    assert home(*argv)["error"]["category"] == "auth"


def test_home_is_not_changed_by_reading(home: SourceHome) -> None:
    before = sorted(p for p in Path(home.folder).iterdir() if p.suffix != ".pyc")
    home("tools", "files:desk")
    home("registry", "list")
    assert sorted(p for p in Path(home.folder).iterdir() if p.suffix != ".pyc") == before
