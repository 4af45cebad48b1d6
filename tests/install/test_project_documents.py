"""Documents in a project: written, tried, held against the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.describe.test_skill import make
from tests.integration.outside import environment, run

from tooli import Tooli
from tooli.install.example_outputs import shorten
from tooli.testing import invoke

FILE_TOOLS = Path(__file__).resolve().parents[2] / "examples" / "file_tools" / "app.py"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / ".state"))
    return tmp_path


@pytest.fixture
def app() -> Tooli:
    return make()


def rows(app: Tooli, *words: str) -> dict[str, str]:
    done = invoke(app, *words, "--json")
    assert done.exit_code == 0, done.stdout
    return {row["path"]: row["action"] for row in done.result}


EVERY = [
    ["generate-skill", "--out", "skills"],
    ["generate-skill", "--format", "agents-md", "--out", "."],
    ["generate-skill", "--format", "claude-md", "--out", "."],
    ["docs", "llms", "--out", "site"],
    ["docs", "man", "--out", "man"],
    ["export", "--target", "openai", "--out", "tools"],
    ["export", "--target", "adk", "--mode", "import", "--app", "a.b:c", "--out", "tools"],
]


class TestWriting:
    @pytest.mark.parametrize("words", EVERY, ids=" ".join)
    def test_twice_changes_nothing(self, app: Tooli, home: Path, words: list[str]) -> None:
        first = rows(app, *words)
        assert set(first.values()) == {"created"}
        before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        assert set(rows(app, *words).values()) == {"current"}
        assert {path: path.read_bytes() for path in before} == before

    @pytest.mark.parametrize("words", EVERY, ids=" ".join)
    def test_a_dry_run_writes_nothing(self, app: Tooli, home: Path, words: list[str]) -> None:
        done = invoke(app, *words, "--dry-run", "--json")
        assert done.exit_code == 0
        assert all("+++ b/" in row["diff"] for row in done.result)
        assert [path for path in home.rglob("*") if path.is_file()] == []

    def test_a_skill_stands_in_a_folder_of_its_own_name(self, app: Tooli, home: Path) -> None:
        rows(app, "generate-skill", "--out", "skills")
        assert (home / "skills" / "my-tool" / "SKILL.md").exists()
        assert (home / "skills" / "my-tool" / "references" / "find.md").exists()

    def test_somebody_elses_file(self, app: Tooli, home: Path) -> None:
        (home / "llms.txt").write_text("# Another thing\n")
        done = invoke(app, "docs", "llms", "--out", ".", "--json")
        assert (done.exit_code, done.error["code"]) == (20, "E3020")
        assert (home / "llms.txt").read_text() == "# Another thing\n"
        assert not (home / "llms-full.txt").exists()
        rows(app, "docs", "llms", "--out", ".", "--force")
        assert (home / "llms.txt.bak").read_text() == "# Another thing\n"

    def test_a_persons_text_around_a_block_stays(self, app: Tooli, home: Path) -> None:
        (home / "AGENTS.md").write_text("# Mine\n\nBe kind.\n")
        rows(app, "generate-agents-md", "--out", ".")
        text = (home / "AGENTS.md").read_text()
        assert text.startswith("# Mine\n\nBe kind.\n")
        assert "#### find" in text

    def test_what_is_printed_is_known_again(self, app: Tooli, home: Path) -> None:
        for words in (["generate-agents-md"], ["generate-skill", "--format", "claude-md"]):
            (home / "AGENTS.md").write_text(invoke(app, *words).stdout)
            assert rows(app, "generate-agents-md", "--out", ".")

    def test_an_export_is_made_again_unless_a_person_has_changed_it(
        self, app: Tooli, home: Path
    ) -> None:
        words = ["export", "--target", "openai", "--out", "."]
        rows(app, *words)

        @app.command()
        def more() -> int:
            """One more."""
            return 1

        file = home / "my_tool_openai.py"
        assert rows(app, *words) == {file.name: "updated"}
        assert "One more." in file.read_text()
        file.write_text(file.read_text() + "# mine\n")
        done = invoke(app, *words, "--json")
        assert (done.exit_code, done.error["code"]) == (20, "E3020")
        assert file.read_text().endswith("# mine\n")


class TestPrinting:
    def test_a_page_of_a_command(self, app: Tooli) -> None:
        assert '.TH "MY\\-TOOL\\-FIND"' in invoke(app, "docs", "man", "find").stdout
        assert '.TH "MY\\-TOOL"' in invoke(app, "docs", "man").stdout

    def test_no_such_command(self, app: Tooli) -> None:
        done = invoke(app, "docs", "man", "fnd", "--json")
        assert (done.exit_code, done.error["suggestion"]["fix"]) == (10, "Try 'find'.")

    def test_llms(self, app: Tooli) -> None:
        assert invoke(app, "docs", "llms").stdout.startswith("# My tool\n\n> Finds")


class TestChecking:
    @pytest.fixture
    def written(self, app: Tooli, home: Path) -> Path:
        for words in EVERY:
            rows(app, *words)
        return home

    def test_all_is_well(self, app: Tooli, written: Path) -> None:
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
    def test_a_document_that_drifts(self, app: Tooli, written: Path, path: str) -> None:
        file = written / path
        text = file.read_text()
        file.write_text(text.replace("Find files", "Find things").replace("find", "fynd", 1))
        done = invoke(app, "docs", "check")
        assert done.exit_code == 20
        assert f"+++ b/{path}" in done.stdout
        assert "Not current: " in done.stderr
        told = invoke(app, "docs", "check", path, "--json").error["details"]["stale"]
        assert [one["path"] for one in told] == [path]

    def test_a_command_that_is_no_more(self, app: Tooli, written: Path) -> None:
        page = written / "skills" / "my-tool" / "references" / "gone.md"
        page.write_text("# My tool gone\n")
        assert invoke(app, "docs", "check").exit_code == 20

    def test_other_peoples_files_are_left_alone(self, app: Tooli, written: Path) -> None:
        (written / "AGENTS.md").write_text("# Nothing of ours\n")
        (written / "other").mkdir()
        (written / "other" / "SKILL.md").write_text("---\nname: other\n---\n")
        (written / "other" / "llms.txt").write_text("# Other\n")
        assert invoke(app, "docs", "check").exit_code == 0

    def test_line_ends_do_not_count(self, app: Tooli, written: Path) -> None:
        file = written / "skills" / "my-tool" / "SKILL.md"
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        assert invoke(app, "docs", "check").exit_code == 0

    def test_nothing_to_check(self, app: Tooli) -> None:
        done = invoke(app, "docs", "check", "--json")
        assert (done.exit_code, done.error["code"]) == (10, "E3010")

    def test_a_path_that_is_not_there(self, app: Tooli) -> None:
        assert invoke(app, "docs", "check", "nowhere", "--json").exit_code == 10


class TestTrying:
    def outside(self, home: Path, *words: str) -> Any:
        env = environment(TOOLI_STATE_DIR=str(home / ".state"))
        return run(FILE_TOOLS, *words, cwd=home, env=env)

    def test_examples_are_run(self, home: Path) -> None:
        (home / "src").mkdir()
        (home / "src" / "a.py").write_text("TODO\n")
        (home / "app.py").touch()
        (home / "data.csv").touch()
        done = self.outside(home, "generate-skill", "--verify", "--out", "skills", "--json")
        assert done.code == 0, done.out
        page = (home / "skills" / "file-tools" / "references" / "find-files.md").read_text()
        assert '```json\n{"ok": true, "result": [{"path": "src/a.py", "size": 5}]}\n```' in page
        deleted = (home / "skills" / "file-tools" / "references" / "delete.md").read_text()
        assert "```json" not in deleted, "what destroys is never tried"
        checked = self.outside(home, "docs", "check", "--json")
        assert checked.code == 0, checked.out

    def test_one_that_fails(self, home: Path) -> None:
        done = self.outside(home, "generate-skill", "--verify", "--json")
        assert done.code == 20
        error = json.loads(done.out)["error"]
        assert error["message"].startswith("Examples that do not work here: find-files *.py")
        assert error["details"]["failures"][0]["error"]["field"] == "root"


def test_shortened() -> None:
    value = {"a": [1, 2, 3, 4], "b": "x" * 200, "c": [[1, 2, 3]], "d": None}
    assert shorten(value) == {
        "a": [1, 2, "… 2 more"],
        "b": f"{'x' * 100}…",
        "c": [[1, 2, "… 1 more"]],
        "d": None,
    }
