"""`export`; tests/install/test_project_documents.py tests the commands that write documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from examples.file_tools.app import app

from tooli import Tooli
from tooli.builtins.document_commands import Target
from tooli.describe.sections import collect_app_info
from tooli.export import CALLERS, export
from tooli.export.export_spec import ExportSpec
from tooli.testing import invoke

TARGETS = get_args(get_args(Target)[0])


def run_export(*args: str) -> dict[str, Any]:
    result = invoke(app, "export", *args, "--json")
    return json.loads(result.stdout)


def test_prints_a_single_file() -> None:
    result = invoke(app, "export", "--target", "openai")
    (source,) = export(ExportSpec(collect_app_info(app), "openai")).values()
    assert result.stdout == source
    assert result.exit_code == 0
    assert run_export("--target", "openai")["result"] == source


def test_prints_several_files_with_names() -> None:
    out = invoke(app, "export", "--target", "adk").stdout
    names = [line[8:] for line in out.splitlines() if line.startswith("# file: ")]
    assert names == list(export(ExportSpec(collect_app_info(app), "adk")))
    assert names == [
        f"adk_file_tools/{name}" for name in ("__init__.py", "root_agent.yaml", "tools.py")
    ]


def test_writes_files_and_leaves_unchanged_ones_alone(tmp_path: Path) -> None:
    args = ("--target", "adk", "--mode", "import", "--with-tests", "--out", str(tmp_path / "new"))
    planned = run_export(*args, "--dry-run")["result"]
    assert [file["action"] for file in planned] == ["created"] * 4
    assert "+class AppTool(BaseTool):" in planned[2]["diff"]
    assert list(tmp_path.iterdir()) == []
    assert [file["action"] for file in run_export(*args)["result"]] == ["created"] * 4
    assert [file["action"] for file in run_export(*args)["result"]] == ["current"] * 4
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        *("__init__.py", "root_agent.yaml", "test_adk_file_tools.py", "tools.py"),
    ]


def test_does_not_overwrite_edited_files(tmp_path: Path) -> None:
    args = ("--target", "adk", "--out", str(tmp_path))
    run_export(*args)
    first = tmp_path / "adk_file_tools" / "__init__.py"
    mine = tmp_path / "adk_file_tools" / "tools.py"
    generated = mine.read_text()
    mine.write_text(f"{generated}\nMINE = 1\n")
    first.unlink()
    error = run_export(*args)["error"]
    assert error["code"] == "E3020"
    assert "--force" in error["suggestion"]["fix"]
    assert "-MINE = 1" in error["details"]["conflicts"][0]["diff"]
    assert mine.read_text().endswith("MINE = 1\n")
    assert not first.exists()  # all files or none
    files = run_export(*args, "--force")["result"]
    assert [file["action"] for file in files] == ["created", "current", "updated"]
    assert mine.read_text() == generated
    assert Path(files[2]["kept"]).read_text().endswith("MINE = 1\n")


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (["openai", "--host", "codex"], "host"),
        (["openai", "--model", "m"], "model"),
        (["openai", "--app", "a:b"], "app"),
        (["openai", "--mode", "import", "--command", "c"], "command"),
        (["openai", "--mode", "import", "--app", "nowhere"], "app"),
        (["permissions"], "host"),
        (["permissions", "--host", "codex", "--remove"], "out"),
        (["openai", "--remove"], "remove"),
        (["permissions", "--host", "codex", "--with-tests"], "with_tests"),
        (["permissions", "--host", "codex", "--command", "c"], "command"),
    ],
)
def test_options_of_other_targets_are_rejected(args: list[str], field: str) -> None:
    error = run_export("--target", *args)["error"]
    assert (error["category"], error["field"]) == ("input", field)


def test_every_target_is_known_and_others_are_rejected() -> None:
    assert set(CALLERS) == set(TARGETS) - {"permissions"}
    assert run_export("--target", "openal")["error"]["code"] == "E1003"
    assert "prefix_rule" in run_export("--target", "permissions", "--host", "codex")["result"]


def test_options_reach_the_export() -> None:
    source = run_export("--target", "openai", "--command", "python -m x")["result"]
    assert 'COMMAND = ["python", "-m", "x"]' in source
    source = run_export("--target", "openai", "--mode", "import", "--app", "a.b:c")["result"]
    assert "from a.b import c as app" in source
    assert "file-tools export --target openai --mode import --app a.b:c" in source
    assert "model: other\n" in run_export("--target", "adk", "--model", "other")["result"]


def test_documentation_lists_targets_and_options() -> None:
    text = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    for target in TARGETS:
        assert f"| `{target}` |" in text
    for name in ("mode", "out", "force", "with-tests", "command", "app", "model", "host"):
        assert f"`--{name} " in text or f"`--{name}`" in text
    for caller in CALLERS.values():
        assert f"`{caller}`" in text


def test_both_llms_files_are_printed() -> None:
    short, full = (
        invoke(app, "docs", "llms", "--print", name).stdout.removesuffix("\n")
        for name in ("short", "full")
    )
    assert "llms-full.txt" in short and "## Output" not in short
    assert "## Output" in full
    both = invoke(app, "docs", "llms").stdout
    assert both.startswith(f"# file: llms.txt\n{short}\n")
    assert f"\n# file: llms-full.txt\n{full}" in both


def make_app_with_examples() -> Tooli:
    examples_app = Tooli("t", version="1")

    @examples_app.command(
        examples=[{"args": ["--pattern", "*.py"]}, {"args": ["x", "--nope", 3]}, {"args": []}]
    )
    def find(pattern: str, count: int = 3) -> list[str]:
        """Find."""
        return [pattern]

    @examples_app.command()
    def other() -> int:
        """Do something else."""
        return 1

    return examples_app


@pytest.mark.parametrize(
    "args",
    [["generate-skill"], ["generate-agents-md"], ["docs", "llms"], ["docs", "man", "find"]],
)
def test_broken_examples_are_left_out_with_a_warning(args: list[str]) -> None:
    done = invoke(make_app_with_examples(), *args, "--json")
    text = done.result.replace("\\-", "-")
    assert "--pattern" in text
    assert "--nope" not in text
    assert done.envelope["meta"]["warnings"] == [
        "find: the example 'find x --nope 3' does not work: There is no parameter 'nope'. "
        "It is left out. Correct examples=.",
        "find: the example 'find' does not work: 'pattern' is missing. "
        "It is left out. Correct examples=.",
    ]


@pytest.mark.parametrize("args", [["find", "--help-agent"], ["--agent-manifest"]])
def test_broken_examples_are_left_out_of_help_for_agents(args: list[str]) -> None:
    done = invoke(make_app_with_examples(), *args)
    assert "--nope" not in done.stdout
    assert "Warning: find: the example 'find x --nope 3' does not work" in done.stderr


def test_command_that_starts_the_program(tmp_path: Path) -> None:
    options = ("generate-skill", "--command", "uvx 'my tool'", "--out", str(tmp_path))
    assert invoke(app, *options).exit_code == 0
    text = (tmp_path / "file-tools" / "SKILL.md").read_text(encoding="utf-8")
    assert "Start the program with: uvx 'my tool'\n" in text
    assert "\nuvx 'my tool' find-files" in text
    assert "\nfile-tools " not in text
    assert invoke(app, "docs", "check", str(tmp_path)).exit_code == 0


@pytest.mark.parametrize("target", ["generic-skill", "claude-skill", "claude-code"])
def test_skill_for_a_target(target: str, tmp_path: Path) -> None:
    text = invoke(app, "generate-skill", "--target", target).stdout
    section = text.partition("## Agent Integration\n")[2]
    caller = "my-agent" if target == "generic-skill" else "claude-code"
    assert f"TOOLI_CALLER={caller} " in section
    assert ("| `TOOLI_SESSION_ID` | No |" in section) == (target != "claude-code")
    assert ("detect-context --json" in section) == (target != "claude-code")
    done = invoke(app, "generate-skill", "--target", target, "--out", str(tmp_path))
    assert done.exit_code == 0, done.stdout
    assert invoke(app, "docs", "check", str(tmp_path)).exit_code == 0


def test_rules_of_gemini_are_written_to_the_home_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    monkeypatch.chdir(project)
    args = ("export", "--target", "permissions", "--host", "gemini", "--json", "--out")
    failed = invoke(app, *args, ".").envelope["error"]
    assert (failed["field"], list(project.iterdir())) == ("out", [])
    assert "home folder" in failed["message"]
    assert invoke(app, *args, str(home)).exit_code == 0
    assert (home / ".gemini" / "policies" / "file-tools.toml").is_file()
