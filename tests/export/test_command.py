"""`export`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from examples.file_tools.app import app

from tooli.builtins.export_command import TARGETS
from tooli.describe.app_info import collect_app_info
from tooli.export import CALLERS, export
from tooli.testing import invoke


def answer(*words: str) -> dict[str, Any]:
    done = invoke(app, "export", *words, "--json")
    return json.loads(done.stdout)


def test_one_file_is_printed_as_it_is() -> None:
    done = invoke(app, "export", "--target", "openai")
    (source,) = export(collect_app_info(app), "openai").values()
    assert done.stdout == source
    assert done.exit_code == 0
    assert answer("--target", "openai")["result"] == source


def test_several_files_are_printed_under_their_names() -> None:
    out = invoke(app, "export", "--target", "adk").stdout
    names = [line[8:] for line in out.splitlines() if line.startswith("# file: ")]
    assert names == list(export(collect_app_info(app), "adk"))
    assert names == [
        f"adk_file_tools/{name}" for name in ("__init__.py", "root_agent.yaml", "tools.py")
    ]


def test_files_are_written_and_left_alone(tmp_path: Path) -> None:
    words = ("--target", "adk", "--mode", "import", "--with-tests", "--out", str(tmp_path / "new"))
    planned = answer(*words, "--dry-run")["result"]
    assert [file["action"] for file in planned] == ["created"] * 4
    assert "+class AppTool(BaseTool):" in planned[2]["diff"]
    assert list(tmp_path.iterdir()) == []
    assert [file["action"] for file in answer(*words)["result"]] == ["created"] * 4
    assert [file["action"] for file in answer(*words)["result"]] == ["current"] * 4
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        *("__init__.py", "root_agent.yaml", "test_adk_file_tools.py", "tools.py"),
    ]


def test_what_says_something_else_is_not_overwritten(tmp_path: Path) -> None:
    words = ("--target", "adk", "--out", str(tmp_path))
    answer(*words)
    first = tmp_path / "adk_file_tools" / "__init__.py"
    mine = tmp_path / "adk_file_tools" / "tools.py"
    made = mine.read_text()
    mine.write_text(f"{made}\nMINE = 1\n")
    first.unlink()
    error = answer(*words)["error"]
    assert error["code"] == "E3020"
    assert "--force" in error["suggestion"]["fix"]
    assert "-MINE = 1" in error["details"]["conflicts"][0]["diff"]
    assert mine.read_text().endswith("MINE = 1\n")
    assert not first.exists()  # everything, or nothing
    files = answer(*words, "--force")["result"]
    assert [file["action"] for file in files] == ["created", "current", "updated"]
    assert mine.read_text() == made
    assert Path(files[2]["kept"]).read_text().endswith("MINE = 1\n")


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["openai", "--host", "codex"], "host"),
        (["openai", "--model", "m"], "model"),
        (["openai", "--app", "a:b"], "app"),
        (["openai", "--mode", "import", "--command", "c"], "command"),
        (["openai", "--mode", "import", "--app", "nowhere"], "app"),
        (["permissions"], "host"),
        (["permissions", "--host", "codex", "--with-tests"], "with_tests"),
        (["permissions", "--host", "codex", "--command", "c"], "command"),
    ],
)
def test_what_would_be_ignored_is_refused(words: list[str], field: str) -> None:
    error = answer("--target", *words)["error"]
    assert (error["category"], error["field"]) == ("input", field)


def test_targets() -> None:
    assert set(CALLERS) == set(TARGETS) - {"permissions"}
    assert answer("--target", "openal")["error"]["code"] == "E1003"
    assert "prefix_rule" in answer("--target", "permissions", "--host", "codex")["result"]


def test_options_reach_the_export() -> None:
    said = answer("--target", "openai", "--command", "python -m x")["result"]
    assert 'COMMAND = ["python", "-m", "x"]' in said
    said = answer("--target", "openai", "--mode", "import", "--app", "a.b:c")["result"]
    assert "from a.b import c as app" in said
    assert "file-tools export --target openai --mode import --app a.b:c" in said
    assert "model: other\n" in answer("--target", "adk", "--model", "other")["result"]


def test_the_document_names_everything() -> None:
    text = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    for target in TARGETS:
        assert f"| `{target}` |" in text
    for name in ("mode", "out", "force", "with-tests", "command", "app", "model", "host"):
        assert f"`--{name} " in text or f"`--{name}`" in text
    for caller in CALLERS.values():
        assert f"`{caller}`" in text
