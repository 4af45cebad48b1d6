"""Generated documents in a project: write, verify, check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.describe.apps import make_documented_app
from tests.integration.app_process import environment, run

from tooli import Tooli
from tooli.install.project_documents import shorten
from tooli.testing import invoke

FILE_TOOLS = Path(__file__).resolve().parents[2] / "examples" / "file_tools" / "app.py"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / ".state"))
    return tmp_path


@pytest.fixture
def app() -> Tooli:
    return make_documented_app()


def rows(app: Tooli, *args: str) -> dict[str, str]:
    result = invoke(app, *args, "--json")
    assert result.exit_code == 0, result.stdout
    return {row["path"]: row["action"] for row in result.result}


ALL_COMMANDS = [
    ["generate-skill", "--out", "skills"],
    ["generate-skill", "--format", "agents-md", "--out", "."],
    ["generate-skill", "--format", "claude-md", "--out", "."],
    ["docs", "llms", "--out", "site"],
    ["docs", "man", "--out", "man"],
    ["export", "--target", "openai", "--out", "tools"],
    ["export", "--target", "adk", "--mode", "import", "--app", "a.b:c", "--out", "tools"],
]


class TestWriting:
    @pytest.mark.parametrize("args", ALL_COMMANDS, ids=" ".join)
    def test_second_run_changes_nothing(self, app: Tooli, home: Path, args: list[str]) -> None:
        first = rows(app, *args)
        assert set(first.values()) == {"created"}
        before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        assert set(rows(app, *args).values()) == {"current"}
        assert {path: path.read_bytes() for path in before} == before

    @pytest.mark.parametrize("args", ALL_COMMANDS, ids=" ".join)
    def test_dry_run_writes_nothing(self, app: Tooli, home: Path, args: list[str]) -> None:
        done = invoke(app, *args, "--dry-run", "--json")
        assert done.exit_code == 0
        assert all("+++ b/" in row["diff"] for row in done.result)
        assert [path for path in home.rglob("*") if path.is_file()] == []

    def test_skill_has_its_own_folder(self, app: Tooli, home: Path) -> None:
        rows(app, "generate-skill", "--out", "skills")
        assert (home / "skills" / "my-tool" / "SKILL.md").exists()
        assert (home / "skills" / "my-tool" / "references" / "find.md").exists()

    def test_file_of_another_app_is_a_conflict(self, app: Tooli, home: Path) -> None:
        (home / "llms.txt").write_text("# Another thing\n")
        done = invoke(app, "docs", "llms", "--out", ".", "--json")
        assert (done.exit_code, done.error["code"]) == (20, "E3020")
        assert (home / "llms.txt").read_text() == "# Another thing\n"
        assert not (home / "llms-full.txt").exists()
        rows(app, "docs", "llms", "--out", ".", "--force")
        assert (home / "llms.txt.bak").read_text() == "# Another thing\n"

    def test_text_around_a_block_stays(self, app: Tooli, home: Path) -> None:
        (home / "AGENTS.md").write_text("# Mine\n\nBe kind.\n")
        rows(app, "generate-agents-md", "--out", ".")
        text = (home / "AGENTS.md").read_text()
        assert text.startswith("# Mine\n\nBe kind.\n")
        assert "#### find" in text

    def test_printed_document_is_recognized(self, app: Tooli, home: Path) -> None:
        for args in (["generate-agents-md"], ["generate-skill", "--format", "claude-md"]):
            (home / "AGENTS.md").write_text(invoke(app, *args).stdout)
            assert rows(app, "generate-agents-md", "--out", ".")

    def test_export_is_regenerated_unless_edited(self, app: Tooli, home: Path) -> None:
        args = ["export", "--target", "openai", "--out", "."]
        rows(app, *args)

        @app.command()
        def more() -> int:
            """One more."""
            return 1

        file = home / "my_tool_openai.py"
        assert rows(app, *args) == {file.name: "updated"}
        assert "One more." in file.read_text()
        file.write_text(file.read_text() + "# mine\n")
        done = invoke(app, *args, "--json")
        assert (done.exit_code, done.error["code"]) == (20, "E3020")
        assert file.read_text().endswith("# mine\n")


class TestPrinting:
    def test_man_prints_the_page_of_a_command(self, app: Tooli) -> None:
        assert '.TH "MY\\-TOOL\\-FIND"' in invoke(app, "docs", "man", "find").stdout
        assert '.TH "MY\\-TOOL"' in invoke(app, "docs", "man").stdout

    def test_unknown_command_suggests_the_closest_one(self, app: Tooli) -> None:
        done = invoke(app, "docs", "man", "fnd", "--json")
        assert (done.exit_code, done.error["suggestion"]["fix"]) == (10, "Try 'find'.")

    def test_llms_document_is_printed(self, app: Tooli) -> None:
        assert invoke(app, "docs", "llms").stdout.startswith(
            "# file: llms.txt\n# My tool\n\n> Finds"
        )


class TestChecking:
    @pytest.fixture
    def written(self, app: Tooli, home: Path) -> Path:
        for args in ALL_COMMANDS:
            rows(app, *args)
        return home

    def test_current_documents_pass(self, app: Tooli, written: Path) -> None:
        done = invoke(app, "docs", "check", "--json")
        assert done.exit_code == 0
        assert {row["state"] for row in done.result} == {"current"}
        kinds = {Path(row["path"]).name for row in done.result}
        assert kinds >= {
            *("SKILL.md", "AGENTS.md", "CLAUDE.md", "llms.txt", "llms-full.txt", "find.md"),
            *("My-tool.1", "My-tool-find.1", "my_tool_openai.py", "tools.py"),
        }

    @pytest.mark.parametrize(
        "path",
        [
            *("skills/my-tool/SKILL.md", "skills/my-tool/references/find.md", "AGENTS.md"),
            *("CLAUDE.md", "site/llms.txt", "site/llms-full.txt", "site/references/find.md"),
            *("man/My-tool-find.1", "tools/my_tool_openai.py", "tools/adk_my_tool/tools.py"),
        ],
    )
    def test_outdated_document_fails_with_a_diff(
        self, app: Tooli, written: Path, path: str
    ) -> None:
        file = written / path
        text = file.read_text()
        file.write_text(text.replace("Find files", "Find things").replace("find", "fynd", 1))
        done = invoke(app, "docs", "check")
        assert done.exit_code == 20
        assert f"+++ b/{path}" in done.stdout
        assert "Outdated: " in done.stderr
        stale = invoke(app, "docs", "check", path, "--json").error["details"]["stale"]
        assert [one["path"] for one in stale] == [path]

    def test_page_of_a_removed_command_fails(self, app: Tooli, written: Path) -> None:
        page = written / "skills" / "my-tool" / "references" / "gone.md"
        page.write_text("# My tool gone\n")
        assert invoke(app, "docs", "check").exit_code == 20

    def test_unrelated_files_are_ignored(self, app: Tooli, written: Path) -> None:
        (written / "AGENTS.md").write_text("# Nothing of ours\n")
        (written / "other").mkdir()
        (written / "other" / "SKILL.md").write_text("---\nname: other\n---\n")
        (written / "other" / "llms.txt").write_text("# Other\n")
        assert invoke(app, "docs", "check").exit_code == 0

    @pytest.mark.parametrize(
        "arguments",
        [
            *("things to disk", "--target nowhere --mode import", "--target", "don't"),
            *("--target openai", "--target openai --mode remote", ""),
        ],
    )
    def test_python_file_that_is_not_an_export_is_ignored(
        self, app: Tooli, written: Path, arguments: str
    ) -> None:
        """A line in a docstring may look like the beginning of an export command."""
        usage = f'"""Helpers.\n\n    \'My tool\' export {arguments}\n"""\n'
        (written / "helpers.py").write_text(usage)
        done = invoke(app, "docs", "check", "--json")
        assert done.exit_code == 0
        assert "helpers.py" not in {row["path"] for row in done.result}

    def test_export_after_a_similar_line_is_checked(self, app: Tooli, written: Path) -> None:
        file = written / "tools" / "my_tool_openai.py"
        file.write_text(f'"""\n    \'My tool\' export things\n"""\n{file.read_text()}')
        stale = invoke(app, "docs", "check", "tools", "--json").error["details"]["stale"]
        assert [row["path"] for row in stale] == ["tools/my_tool_openai.py"]

    def test_line_ends_are_ignored(self, app: Tooli, written: Path) -> None:
        file = written / "skills" / "my-tool" / "SKILL.md"
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        assert invoke(app, "docs", "check").exit_code == 0

    def test_folder_without_documents_is_an_error(self, app: Tooli) -> None:
        done = invoke(app, "docs", "check", "--json")
        assert (done.exit_code, done.error["code"]) == (10, "E3010")
        assert done.error["message"] == "No document of My tool was found in '.'."

    def test_missing_path_is_an_error(self, app: Tooli) -> None:
        assert invoke(app, "docs", "check", "nowhere", "--json").exit_code == 10


class TestVerify:
    def run_process(self, home: Path, *args: str) -> Any:
        env = environment(TOOLI_STATE_DIR=str(home / ".state"))
        return run(FILE_TOOLS, *args, cwd=home, env=env)

    def test_examples_are_run(self, home: Path) -> None:
        (home / "src").mkdir()
        (home / "src" / "a.py").write_text("TODO\n")
        (home / "app.py").touch()
        (home / "data.csv").touch()
        done = self.run_process(home, "generate-skill", "--verify", "--out", "skills", "--json")
        assert done.code == 0, done.out
        page = (home / "skills" / "file-tools" / "references" / "find-files.md").read_text()
        assert '```json\n{"ok": true, "result": [{"path": "src/a.py", "size": 5}]}\n```' in page
        deleted = (home / "skills" / "file-tools" / "references" / "delete.md").read_text()
        assert "```json" not in deleted, "destructive examples are never run"
        checked = self.run_process(home, "docs", "check", "--json")
        assert checked.code == 0, checked.out

    def test_failing_example_is_an_error(self, home: Path) -> None:
        done = self.run_process(home, "generate-skill", "--verify", "--json")
        assert done.code == 20
        error = json.loads(done.out)["error"]
        assert error["message"].startswith("These examples fail: find-files *.py")
        assert error["details"]["failures"][0]["error"]["field"] == "root"


def test_shorten_cuts_long_lists_and_strings() -> None:
    value = {"a": [1, 2, 3, 4], "b": "x" * 200, "c": [[1, 2, 3]], "d": None}
    assert shorten(value) == {
        "a": [1, 2, "… 2 more"],
        "b": f"{'x' * 100}…",
        "c": [[1, 2, "… 1 more"]],
        "d": None,
    }
