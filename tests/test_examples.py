"""The examples run: as a real process, from Python, and through every interface."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import types
from hashlib import md5
from pathlib import Path

import pytest
import yaml
from examples.file_tools.app import app

from tooli.testing import Case, CommandResult, assert_examples, assert_parity, run

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "examples" / "file_tools" / "app.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a few files, and the current folder."""
    files = {
        "src/main.py": "print('hi')\n# TODO: more\n",
        "src/deep/helper.py": "HELP = 1\n",
        "src/.hidden/secret.py": "",
        "docs/notes.txt": "TODO: write\n",
        "docs/plan.txt": "plan\n",
        "image.bin": "\0",
        "old.log": "old\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "image.bin").write_bytes(b"\xff\xfe\xfa TODO")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def file_tools(*argv: str, code: int = 0) -> CommandResult:
    """Run the example as a process in the current folder."""
    done = run(PROGRAM, *argv)
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done


# ------------------------------------------------------------------ find-files


def test_find_files_returns_path_and_size(folder: Path) -> None:
    found = [{"path": "src/main.py", "size": 25}, {"path": "src/deep/helper.py", "size": 9}]
    assert file_tools("find-files", "*.py").result == found
    assert app.call("find-files", pattern="*.py").unwrap() == found
    assert app.find_files("*.py").unwrap() == found


def test_find_files_includes_hidden_files_on_request(folder: Path) -> None:
    done = file_tools("find-files", "*.py", "--root", "src", "--include-hidden")
    assert "src/.hidden/secret.py" in [file["path"] for file in done.result]


def test_find_files_warns_of_folders_that_it_skips(folder: Path) -> None:
    done = file_tools("find-files", "*.py", "--max-depth", "2")
    assert done.result == [{"path": "src/main.py", "size": 25}]
    assert done.envelope["meta"]["warnings"] == [
        "Folders below src were not searched (--max-depth 2)"
    ]
    assert app.call("find-files", pattern="*.py", max_depth=2).meta["warnings"]


def test_nothing_found_suggests_a_pattern(folder: Path) -> None:
    error = file_tools("find-files", "*.rs", "--root", "src", code=10).error
    assert error is not None
    assert (error["code"], error["field"], error["is_retryable"]) == ("E3001", "pattern", True)
    assert error["details"] == {"pattern": "*.rs", "root": "src", "endings": [".py"]}
    argv = error["suggestion"]["argv"]
    assert argv == ["python", str(PROGRAM), "find-files", "*.py", "--root", "src"]
    again = subprocess.run([sys.executable, *argv[1:]], capture_output=True, check=True)
    assert json.loads(again.stdout)["ok"]


def test_empty_folder_has_no_suggestion(folder: Path) -> None:
    (folder / "empty").mkdir()
    error = app.call("find-files", pattern="*.rs", root="empty").error
    assert error is not None
    assert error.suggestion is None


def test_every_problem_of_the_input_is_reported(folder: Path) -> None:
    error = file_tools("find-files", "--max-depth", "0", "--root", "nowhere", code=2).error
    assert error is not None
    assert {each["field"] for each in error["details"]["errors"]} == {
        "pattern",
        "max_depth",
        "root",
    }


# ------------------------------------------------------------------ other commands


def test_search_yields_matching_lines(folder: Path) -> None:
    found = [
        {"path": "docs/notes.txt", "line": 1, "text": "TODO: write"},
        {"path": "src/main.py", "line": 2, "text": "# TODO: more"},
    ]
    assert file_tools("search", "TODO", "--jsonl").lines == found
    assert file_tools("search", "todo", "--ignore-case", "--json").result == found
    assert list(app.stream("search", text="TODO")) == found
    assert list(app.stream("search", text="TODO", pattern="*.py")) == found[1:]


def test_search_logs_what_it_skipped(folder: Path) -> None:
    assert "image.bin is not text" in file_tools("search", "TODO", "-v").stderr
    assert file_tools("search", "TODO").stderr == ""


def test_checksum_is_async(folder: Path) -> None:
    argv = ("checksum", "old.log", "docs/plan.txt", "--algorithm", "md5")
    found = [
        {"path": path, "digest": md5((folder / path).read_bytes()).hexdigest()}
        for path in ("old.log", "docs/plan.txt")
    ]
    assert file_tools(*argv).result == found
    assert app.call("checksum", files=["old.log"], algorithm="md5").unwrap() == found[:1]


async def test_checksum_can_be_awaited(folder: Path) -> None:
    result = await app.acall("checksum", files=["old.log"])
    assert len(result.unwrap()[0]["digest"]) == 64


def test_delete_needs_confirmation(folder: Path) -> None:
    error = file_tools("delete", "old.log", code=2).error
    assert error is not None
    assert error["code"] == "E1010"
    assert file_tools("delete", "old.log", "--dry-run").envelope["meta"]["dry_run"]
    assert not app.call("delete", files=["old.log"]).ok
    assert (folder / "old.log").exists()
    assert file_tools("delete", "old.log", "--yes").result == [{"path": "old.log", "size": 4}]
    assert not (folder / "old.log").exists()


def test_delete_leaves_all_files_when_one_is_missing(folder: Path) -> None:
    file_tools("delete", "old.log", "no.log", "--yes", code=2)
    assert not app.options(yes=True).call("delete", files=["old.log", "no.log"]).ok
    assert (folder / "old.log").exists()


def test_rename_accepts_json_flags_and_a_file(folder: Path) -> None:
    first = file_tools("rename", "--root", "docs", "--rule", '{"match": "*.txt", "ending": ".md"}')
    assert first.result[0] == {"old": "docs/notes.txt", "new": "docs/notes.md"}
    second = file_tools(
        *("rename", "--root", "docs", "--rule.match", "*.md"),
        *("--rule.replace.old", "plan", "--rule.replace.new", "idea"),
    )
    assert second.result == [{"old": "docs/plan.md", "new": "docs/idea.md"}]
    (folder / "rule.json").write_text('{"match": "*.md", "prefix": "my-"}')
    third = file_tools("rename", "--root", "docs", "--rule", "@rule.json")
    assert [new["new"] for new in third.result] == ["docs/my-idea.md", "docs/my-notes.md"]


def test_rename_overwrites_nothing(folder: Path) -> None:
    rule = {"match": "*.txt", "replace": {"old": "notes", "new": "plan"}}
    taken = app.call("rename", root="docs", rule=rule)
    assert taken.error is not None
    assert (taken.error.code, taken.error.details) == ("E3020", {"taken": ["docs/plan.txt"]})
    missing = app.call("rename", rule={"match": "*.jpg"})
    assert missing.error is not None
    assert (missing.error.code, missing.error.field) == ("E3001", "rule.match")


def test_rename_names_the_invalid_field(folder: Path) -> None:
    rule = '{"match": "*", "replace": {"old": ""}}'
    error = file_tools("rename", "--rule", rule, code=2).error
    assert error is not None
    assert error["field"] == "rule.replace.old"


# ------------------------------------------------------------------ the whole app


@pytest.mark.parametrize(
    "case",
    [
        Case("find-files", {"pattern": "*.py"}),
        Case("find-files", {"pattern": "*.py", "max_depth": 2}),
        Case("find-files", {"pattern": "*.rs", "root": "src"}),
        Case("search", {"text": "TODO", "root": "src"}),
        Case("checksum", {"files": ["old.log"], "algorithm": "sha1"}),
        Case("delete", {"files": ["old.log"]}, {"dry_run": True}),
        Case("rename", {"rule": {"match": "*.jpg"}}),
    ],
    ids=lambda case: case.tool,
)
def test_every_interface_gives_the_same_answer(folder: Path, case: Case) -> None:
    assert_parity(app, case)


def test_examples_of_the_commands_work(folder: Path) -> None:
    for name in ("app.py", "data.csv"):
        (folder / name).touch()
    (folder / "rule.json").write_text('{"match": "*"}')
    assert_examples(app)


def test_ordinary_call_loads_nothing_heavy(folder: Path) -> None:
    """`lazy_command` loads pydantic only when `rename` is called."""
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.argv[0] = 'file-tools'\n"
        "from examples.file_tools.app import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'typer', 'click', 'rich', 'asyncio', 'inspect'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    argv = ("-c", code, str(ROOT), "find-files", "*.py", "--json")
    done = run(sys.executable, *argv)
    assert done.envelope["ok"]
    assert done.stderr == "[]\n"


def test_demo_prints_the_expected_results() -> None:
    demo = ROOT / "examples" / "demo.py"
    done = run(demo, timeout=120)
    assert done.exit_code == 0, done.stdout
    assert "All results above were as expected." in done.stdout
    assert "undeclared" not in done.stdout
    assert done.stdout.count("Warning:") == 1, "only the warning that the demo shows"
    assert "\x1b" not in done.stdout


# ------------------------------------------------------------------ callers

CALLERS = ROOT / "examples" / "callers"
AS_PROGRAM = {"FILE_TOOLS": f"{sys.executable} {PROGRAM}"}


def run_caller(*argv: str, folder: Path) -> list[str]:
    """Run an example of a caller; return the lines of its output."""
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, **AS_PROGRAM},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_shell_example(folder: Path) -> None:
    one_call, in_session, context = map(
        json.loads, run_caller("sh", str(CALLERS / "agent.sh"), folder=folder)
    )
    assert one_call["meta"]["caller_id"] == "my-agent"
    assert "session_id" not in one_call["meta"]
    assert in_session["meta"]["session_id"].startswith("session-")
    assert in_session["meta"]["session_id"] == context["meta"]["session_id"]
    assert context["result"]["identified_via_convention"] is True


@pytest.mark.parametrize("program", [sys.executable, "node"])
def test_subprocess_examples(program: str, folder: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    file = CALLERS / ("agent.mjs" if program == "node" else "agent.py")
    lines = run_caller(program, str(file), "*.txt", folder=folder)
    assert sorted(lines) == ["docs/notes.txt", "docs/plan.txt"]
    with pytest.raises(subprocess.CalledProcessError) as failure:
        run_caller(program, str(file), "*.txt", "--rot", ".", folder=folder)
    assert "E1004" in failure.value.stderr and "root" in failure.value.stderr


def test_langchain_example(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool calls the program, whatever package provides the decorator."""
    calls: list[object] = []
    tools = types.ModuleType("langchain_core.tools")
    vars(tools).update(tool=lambda fn: calls.append(fn) or fn, ToolException=RuntimeError)
    for name, module in {"langchain_core": types.ModuleType("x"), tools.__name__: tools}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("FILE_TOOLS", AS_PROGRAM["FILE_TOOLS"])
    example = runpy.run_path(str(CALLERS / "langchain_agent.py"))
    assert calls == [example["find_files"]]
    assert len(example["find_files"]("*.txt")) == 2
    with pytest.raises(RuntimeError, match="E1"):
        example["find_files"]("--nope")


def test_workflow_and_container_examples(folder: Path) -> None:
    """The commands of the files run here, with the variables that the files set."""
    workflow = yaml.safe_load((CALLERS / "workflow.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for step in workflow["jobs"]["list"]["steps"] if "run" in step]
    assert steps.pop(0) == "pip install ."
    dockerfile = (CALLERS / "Dockerfile").read_text(encoding="utf-8").splitlines()
    words = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in dockerfile if line}
    entry = [*json.loads(words["ENTRYPOINT"]), *json.loads(words["CMD"])]
    steps.append(f"{' '.join(entry)} --json")
    assert words["ENV"] == f"TOOLI_CALLER={workflow['env']['TOOLI_CALLER']}"
    env = {**os.environ, "TOOLI_CALLER": "my-agent", "TOOLI_SESSION_ID": "run-1"}
    for step in steps:
        line = step.replace("python examples/file_tools/app.py", AS_PROGRAM["FILE_TOOLS"])
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=env, capture_output=True, check=True, timeout=60
        )
        text = done.stdout.decode() or (folder / "files.json").read_text()
        assert json.loads(text)["meta"]["session_id"] == "run-1"
        assert json.loads(text)["meta"]["caller_id"] == "my-agent"
