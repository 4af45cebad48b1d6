"""The ways in which authors define an app and other programs use it, each in a real process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment

FILE_TOOLS = '''
from enum import Enum
from pathlib import Path

from pydantic import Field
from tooli import AgentContext, Annotated, Argument, Option, StdinOr, Tooli
from tooli.annotations import Destructive, Idempotent, ReadOnly
from tooli.detect import detect_execution_context
from tooli.errors import InputError, Suggestion

app = Tooli(
    name="file-tools",
    description="Work with the files of a project",
    version="5.0.0",
    default_output="auto",
    mcp_transport="stdio",
    skill_auto_generate=True,
    permissions={"filesystem": "read-write", "network": "none"},
)


class OutputFormat(str, Enum):
    TABLE = "table"
    CSV = "csv"


@app.command(
    annotations=ReadOnly | Idempotent,
    cost_hint="low",
    human_in_the_loop=False,
    examples=[
        {"args": ["--pattern", "*.py", "--root", "."], "description": "Find the Python files"},
        {"args": ["test_*", "--max-depth", "3"], "description": "Find the tests"},
    ],
    error_codes={"E3001": "No file has such a name"},
    timeout=60.0,
)
def find_files(
    pattern: Annotated[str, Argument(help="Names to find")],
    root: Annotated[
        Path, Option(help="Where to search", exists=True, file_okay=False, resolve_path=True)
    ] = Path("."),
    max_depth: Annotated[int, Option(help="How deep to search", min=1, max=100)] = 10,
    include_hidden: Annotated[bool, Option(help="Include hidden files")] = False,
    output_format: Annotated[OutputFormat, Option(help="How to show them")] = OutputFormat.TABLE,
) -> list[dict]:
    """Find files by name.

    Searches all folders below the root.
    """
    return [{"path": path.name} for path in sorted(root.rglob(pattern))]
'''

MORE_TOOLS = '''

@app.command(
    handoffs=[{"command": "deploy", "when": "After a successful build"}],
    capabilities=["fs:read"],
    delegation_hint="Use an agent that may start programs",
)
def build(target: str) -> dict:
    return {"target": target}


@app.command()
def report(start_date: str) -> dict:
    raise InputError(
        message="Invalid date format",
        code="E1005",
        field="start_date",
        suggestion=Suggestion(fix="Use ISO 8601 format: YYYY-MM-DD"),
    )


@app.command()
def process(
    input_data: Annotated[StdinOr[Path], Argument(help="A file, a URL or stdin")],
) -> dict:
    """Process data from any source."""
    return {"length": len(input_data.read_text())}


@app.command()
def status() -> dict:
    context = detect_execution_context()
    return {"is_agent": context.is_agent, "category": str(context.category.value)}
'''

MAIN = """

if __name__ == "__main__":
    app()
"""


class Project:
    """A folder with the module of an app, and files that it finds."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        (folder / "myapp.py").write_text(source + MAIN)
        (folder / "src").mkdir()
        (folder / "src" / "main.py").write_text("")

    def run(self, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return self._start([str(self.folder / "myapp.py"), *argv], stdin, env)

    def python(self, code: str) -> Any:
        """Run code that imports the app, and return the JSON that it prints."""
        done = self._start(["-c", code], "", {"PYTHONPATH": str(self.folder)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _start(
        self, argv: list[str], stdin: str, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *argv],
            cwd=self.folder,
            env={**environment(), **env},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def one_command(tmp_path: Path) -> Project:
    return Project(tmp_path, FILE_TOOLS)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, FILE_TOOLS + MORE_TOOLS)


def result_of(done: subprocess.CompletedProcess[str]) -> Any:
    envelope = json.loads(done.stdout)
    assert envelope["ok"], envelope
    return envelope["result"]


# ------------------------------------------------------------------ command lines


@pytest.mark.parametrize("name", [["find-files"], []])
@pytest.mark.parametrize("argument", [["*.py"], ["--pattern", "*.py"]])
def test_only_command_with_and_without_its_name(
    one_command: Project, name: list[str], argument: list[str]
) -> None:
    done = one_command.run(*name, *argument, "--root", "./src", "--json")
    assert result_of(done) == [{"path": "main.py"}]


@pytest.mark.parametrize("kind", ["one_command", "project"])
def test_builtin_commands_of_every_app(kind: str, request: pytest.FixtureRequest) -> None:
    project: Project = request.getfixturevalue(kind)
    assert "name: file-tools" in project.run("generate-skill").stdout
    assert "# AGENTS.md" in project.run("generate-skill", "--format", "agents-md").stdout
    assert "# AGENTS.md" in project.run("generate-agents-md").stdout
    for target in ("openai", "langchain"):
        source = project.run("export", "--target", target).stdout
        assert "find_files" in source
        compile(source, target, "exec")
    assert result_of(project.run("mcp", "export", "--json"))
    assert "openapi" in project.run("api", "export-openapi").stdout
    assert "file-tools" in project.run("docs", "llms").stdout
    assert project.run("docs", "man").stdout.startswith(".")


def test_schemas_of_one_command_and_of_all(project: Project) -> None:
    one = json.loads(project.run("find-files", "--schema", "json").stdout)
    assert one["input_schema"]["required"] == ["pattern"]
    every = json.loads(project.run("--schema", "json").stdout)
    assert [command["name"] for command in every["commands"]] == [
        *("find-files", "build", "report", "process", "status"),
    ]


def test_input_from_a_file_and_from_stdin(project: Project) -> None:
    (project.folder / "data.txt").write_text("hello")
    assert result_of(project.run("process", "data.txt", "--json")) == {"length": 5}
    assert result_of(project.run("process", "-", "--json", stdin="hello")) == {"length": 5}
    assert result_of(project.run("process", "--json", stdin="hello")) == {"length": 5}


def test_caller_is_named_by_a_variable(project: Project) -> None:
    found = result_of(project.run("detect-context", "--json", TOOLI_CALLER="claude-code"))
    assert (found["category"], found["caller_id"]) == ("ai_agent", "claude-code")
    assert found["identified_via_convention"] is True
    status = result_of(project.run("status", "--json", TOOLI_CALLER="claude-code"))
    assert status == {"is_agent": True, "category": "ai_agent"}


# ------------------------------------------------------------------ Python


def test_python_call_returns_result_and_meta(one_command: Project) -> None:
    found = one_command.python(
        "import json\n"
        "from myapp import app\n"
        "result = app.call('find-files', pattern='*.py', root='./src')\n"
        "assert result.ok and result.meta['duration_ms'] > 0\n"
        "accessor = app.find_files(pattern='*.py', root='./src')\n"
        "print(json.dumps([result.result, accessor.unwrap(), result.meta['tool']]))\n"
    )
    assert found == [[{"path": "main.py"}], [{"path": "main.py"}], "file-tools.find-files"]


def test_python_call_from_async_code(project: Project) -> None:
    found = project.python(
        "import asyncio\n"
        "from myapp import app\n"
        "async def main():\n"
        "    return await app.acall('find-files', pattern='*.py', root='./src')\n"
        "print(asyncio.run(main()).model_dump_json())\n"
    )
    assert found["result"] == [{"path": "main.py"}]


def test_python_call_is_its_own_category(project: Project) -> None:
    found = project.python(
        "import json\nfrom myapp import app\nprint(json.dumps(app.call('status').result))\n"
    )
    assert found["category"] == "python_api"


def test_exported_functions_call_the_app(project: Project) -> None:
    done = project.run("export", "--target", "python", "--mode", "import", "--app", "myapp:app")
    (project.folder / "file_tools_api.py").write_text(done.stdout)
    found = project.python(
        "import json\n"
        "from file_tools_api import find_files\n"
        "print(json.dumps(find_files(pattern='*.py', root='./src')))\n"
    )
    assert found == [{"path": "main.py"}]


def test_handoff_to_an_unknown_command_does_not_break_the_call(project: Project) -> None:
    envelope = json.loads(project.run("build", "web", "--json").stdout)
    assert envelope["result"] == {"target": "web"}
    assert "deploy" in envelope["meta"]["warnings"][0]


def test_error_with_a_suggestion_that_has_only_a_fix(project: Project) -> None:
    done = project.run("report", "tomorrow", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["field"]) == ("E1005", "start_date")
    assert error["suggestion"]["fix"] == "Use ISO 8601 format: YYYY-MM-DD"
