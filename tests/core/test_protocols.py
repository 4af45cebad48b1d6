"""The keywords that type checkers see are those that are accepted at run time."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tooli.core.protocols
from tooli.core import TYPER_APP_KEYWORDS, TYPER_COMMAND_KEYWORDS, TYPER_GROUP_KEYWORDS
from tooli.core.definitions import COMMAND_KEYWORDS, DANGER_LEVELS
from tooli.providers.resources import PROMPT_KEYWORDS, RESOURCE_KEYWORDS
from tooli.python_api import PYTHON_OPTIONS

SOURCE = Path(tooli.core.protocols.__file__)
OPTION_TABLES = SOURCE.with_name("_hot_tables.py")
ROOT = SOURCE.parents[3]


def read_typed_dicts() -> dict[str, set[str]]:
    """Every TypedDict with its keys; they exist for type checkers only."""
    keys: dict[str, set[str]] = {}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (SOURCE, OPTION_TABLES)]
    for node in [node for tree in trees for node in ast.walk(tree)]:
        if isinstance(node, ast.ClassDef):
            own = {
                field.target.id
                for field in node.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            }
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            keys[node.name] = own.union(*[keys.get(base, set()) for base in bases])
    return keys


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("CommandOptions", TYPER_COMMAND_KEYWORDS | COMMAND_KEYWORDS),
        ("CallbackOptions", TYPER_GROUP_KEYWORDS),
        ("GroupOptions", TYPER_GROUP_KEYWORDS | {"name", "callback"}),
        ("AppOptions", TYPER_APP_KEYWORDS),
        ("CallOptions", PYTHON_OPTIONS),
        ("PromptOptions", PROMPT_KEYWORDS),
        ("ResourceOptions", RESOURCE_KEYWORDS),
    ],
)
def test_keywords_are_accepted_at_run_time(name: str, accepted: frozenset[str]) -> None:
    assert read_typed_dicts()[name] == accepted


def test_danger_levels_match_the_literal_type() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert f"Literal[{', '.join(json.dumps(level) for level in DANGER_LEVELS)}]" in text


def test_module_is_empty_at_run_time() -> None:
    assert [name for name in vars(tooli.core.protocols) if name[0].isupper()] == ["TYPE_CHECKING"]


CHECKED = """
from tooli import Tooli
from tooli.annotations import ReadOnly

app = Tooli("shop", version="1", no_args_is_help=True)
group = Tooli("group")
app.add_typer(group, name="group")


@app.callback(invoke_without_command=True)
def main() -> None: ...


@app.command("find", annotations=ReadOnly, timeout=5, examples=[{"args": ["x"]}], handoffs=["y"])
def find(pattern: str) -> list[str]:
    return [pattern]


@app.resource("notes://{id}", mime_type="text/plain")
def note(id: int) -> str:
    return str(id)


@app.prompt(title="Review")
def review(code: str) -> str:
    return code


app.lazy_command("package.module:function", hidden=True)
app.options(yes=True, dry_run=True, caller="me").call("find", pattern="x")
found: list[str] = find("x")

Tooli("shop", no_arg_is_help=True)  # wrong
Tooli("shop", security_policy="lax")  # wrong
app.command(timout=5)  # wrong
app.command(timeout="5")  # wrong
app.command(danger_level="hihg")  # wrong
app.command(annotations="read-only")  # wrong
app.command(examples=[{"argz": []}])  # wrong
app.command(handoffs=[{"command": "x", "whn": "y"}])  # wrong
app.lazy_command("a:b", hiden=True)  # wrong
app.callback(hiden=True)  # wrong
app.add_typer(group, nam="x")  # wrong
app.resource("n://x", titel="x")  # wrong
app.prompt(descripton="x")  # wrong
app.options(dryrun=True)  # wrong
app.asgi(tokn="x")  # wrong
"""


def test_pyright_finds_misspelled_keywords_and_wrong_values(tmp_path: Path) -> None:
    """One run of pyright over a small program: valid lines pass, each wrong line is an error."""
    program = tmp_path / "program.py"
    program.write_text(CHECKED, encoding="utf-8")
    settings = {
        "include": [str(program)],
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.10",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    ended = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
        + ["--project", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    report = json.loads(ended.stdout)
    assert report["summary"]["filesAnalyzed"] == 1, ended.stdout
    errors = {
        entry["range"]["start"]["line"]
        for entry in report["generalDiagnostics"]
        if entry["severity"] == "error"
    }
    wrong = {i for i, line in enumerate(CHECKED.splitlines()) if line.endswith("# wrong")}
    assert errors == wrong, report["generalDiagnostics"]
