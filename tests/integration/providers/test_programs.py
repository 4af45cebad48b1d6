"""Programs of other projects as tools: read, called with every parameter, driven by an MCP client.

The environment has 14 packages with 30 console scripts.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.integration.providers.program_environment import list_scripts, prepare
from tests.integration.providers.round_trip import RoundTrip

from tooli.errors import DependencyError
from tooli.providers.programs.program_reading import ReadOptions, read_program
from tooli.providers.programs.program_targets import find_target

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="scripts of POSIX")


@pytest.fixture(scope="module")
def programs() -> Path:
    return prepare()


def read_kind(script: Path) -> str | None:
    """Return the kind of the parser of a script, read in the sandbox; None if it has none."""
    try:
        return read_program(find_target(str(script), "/", None), ReadOptions({}, True)).kind
    except DependencyError:
        return None


def test_parsers_of_console_scripts(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    scripts = list_scripts(programs)
    with ThreadPoolExecutor(2) as threads:
        kinds = dict(zip([s.name for s in scripts], threads.map(read_kind, scripts), strict=True))
    unread = {name for name, kind in kinds.items() if kind is None}
    assert len(scripts) >= 28 and len(unread) <= 0.05 * len(scripts), unread
    assert {*kinds.values()} >= {"click", "argparse", "optparse", "cyclopts"}


ROUND_TRIPS = {
    "click": (0.98, ("sqlite-utils", "pip-compile", "pip-sync", "towncrier")),
    "argparse": (
        0.95,
        (
            *("isort", "yamllint", "codespell", "pyproject-build", "dunamai"),
            *("vulture", "bandit", "bandit-baseline", "bandit-config-generator"),
        ),
    ),
    "optparse": (0.95, ("pycodestyle",)),
}
"""How many parameters have to arrive, and the programs."""


@pytest.mark.parametrize("kind", ROUND_TRIPS)
def test_values_arrive(programs: Path, tmp_path: Path, kind: str) -> None:
    """Arguments become words, from which the program's own parser gets the same values."""
    least, names = ROUND_TRIPS[kind]
    sample = tmp_path / "sample.txt"
    sample.write_text("x", encoding="utf-8")
    right, total, wrong = 0, 0, list[str]()
    for name in names:
        path = str(programs / name)
        request = {"kind": "script", "path": path, "prog": name, "arguments": []}
        found = RoundTrip(str(programs / "python"), request, str(sample))
        assert (found.error, found.kind) == ("", kind), name
        right, total, wrong = right + found.right, total + found.total, wrong + found.wrong
    assert right >= least * total, "\n".join(wrong)


APP = """
import sys
from tooli import Tooli
from tooli.annotations import OpenWorld
from tooli.providers import CLIProvider

app = Tooli("desk")
for name in ("sqlite-utils", "isort", "yamllint", "pycodestyle", "towncrier"):
    provider = CLIProvider(f"exe:{PROGRAMS}/{name}", annotations={"*": OpenWorld}, stdin=True)
    app.add_provider(provider, namespace=name)
app.add_provider(CLIProvider(f"exe:{PROGRAMS}/codespell"), namespace="spelling")
app()
"""


async def test_an_mcp_client_drives_five_programs(programs: Path, tmp_path: Path) -> None:
    app = tmp_path / "desk.py"
    app.write_text(f"PROGRAMS = {str(programs)!r}\n{APP}", encoding="utf-8")
    env = {**os.environ, "TOOLI_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    server = StdioServerParameters(
        command=sys.executable, args=[str(app), "mcp", "serve"], env=env, cwd=str(tmp_path)
    )
    async with Client(server) as client:
        listed: dict[str, Any] = {}
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            listed.update({tool.name: tool for tool in page.tools})
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(listed) > 50
        assert listed["spelling_codespell"].annotations.destructive_hint

        async def call(name: str, **arguments: Any) -> Any:
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, answer.content
            return answer.content[0].text

        rows = '[{"id": 1, "name": "Ada"}, {"id": 2, "name": "-dash"}]'
        await call(
            "sqlite_utils_insert", path="x.db", table="people", file="-", stdin=rows, pk=["id"]
        )
        found = await call("sqlite_utils_query", path="x.db", sql="select name from people")
        assert json.loads(found) == [{"name": "Ada"}, {"name": "-dash"}]
        missing = await client.call_tool("sqlite_utils_rows", {"path": "x.db", "dbtable": "nope"})
        assert missing.is_error and "no such table: nope" in str(missing.content)

        source = tmp_path / "-odd name.py"
        source.write_text("import sys\nimport os\nx=1\n", encoding="utf-8")
        assert await call("isort_isort", files=["-odd name.py"]) == f"Fixing {source}"
        assert source.read_text().startswith("import os\nimport sys\n")
        style = await client.call_tool("pycodestyle_pycodestyle", {"arguments": ["-odd name.py"]})
        assert style.is_error and "E225" in str(style.content)

        (tmp_path / "a.yaml").write_text("a:   1\n", encoding="utf-8")
        yaml = {"files": ["a.yaml"], "format": "parsable"}
        problems = await client.call_tool("yamllint_yamllint", yaml)
        assert "too many spaces after colon" in str(problems.content)

        settings = '[tool.towncrier]\ndirectory = "news"\nname = "x"\n'
        (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
        await call("towncrier_create", filename="1.feature", content="Add -x.")
        (news,) = (tmp_path / "news").glob("1.feature*")
        assert "Add -x." in news.read_text(encoding="utf-8")

        refused = await client.call_tool("spelling_codespell", {"files": ["a.yaml"]})
        assert refused.is_error and "E1010" in str(refused.content)
