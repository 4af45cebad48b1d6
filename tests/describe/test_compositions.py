"""Pipe contracts, and sequences of commands that are inferred from types and declarations."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from tooli import DefinitionError, StdinOr, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.describe.agent_documents import build_manifest, render_skill_md
from tooli.describe.compositions import (
    PipeContract,
    can_pipe,
    infer_compositions,
    pipe_input,
    pipe_output,
)
from tooli.describe.sections import collect_app_info


class User(TypedDict):
    name: str
    age: int


class Name(TypedDict):
    name: str


class Price(TypedDict):
    price: float


def make_app() -> Tooli:
    app = Tooli("people", version="1.0")

    @app.command(annotations=ReadOnly, paginated=True)
    def find(pattern: str = "*") -> list[User]:
        return [User(name="ada", age=36), User(name="bob", age=7)]

    @app.command(annotations=ReadOnly)
    def first() -> User:
        return User(name="ada", age=36)

    @app.command(annotations=ReadOnly)
    def count(users: StdinOr[Iterator[Name]]) -> int:
        return len(list(users))

    @app.command(annotations=ReadOnly)
    def show(user: StdinOr[Name]) -> str:
        return user["name"]

    @app.command(annotations=ReadOnly)
    def total(prices: StdinOr[list[Price]]) -> float:
        return sum([price["price"] for price in prices])

    @app.command(annotations=ReadOnly)
    def words(text: StdinOr[str]) -> int:
        return len(text.split())

    @app.command(annotations=Destructive)
    def delete(name: str) -> str:
        return name

    return app


def compositions(app: Tooli, kind: str) -> list[Any]:
    app_info = collect_app_info(app)
    found = infer_compositions(app_info.name, app_info.tools)
    return [composition for composition in found if composition.kind == kind]


def test_pipe_joins_commands_whose_types_fit() -> None:
    found = compositions(make_app(), "pipe")
    assert [composition.lines[0] for composition in found] == [
        "people find --jsonl | people count - --json",
        "people first --json | people count - --json",
        "people first --json | people show - --json",
    ]


def test_inferred_pipes_run(tmp_path: Path) -> None:
    program = tmp_path / "people.py"
    source = Path(__file__).read_text(encoding="utf-8")
    program.write_text(f"{source}\n\nmake_app()()\n", encoding="utf-8")
    for composition in compositions(make_app(), "pipe"):
        outputs = b""
        for part in composition.lines[0].split(" | "):
            argv = [sys.executable, str(program), *shlex.split(part)[1:]]
            outputs = subprocess.run(
                argv, input=outputs, capture_output=True, check=True, timeout=60
            ).stdout
        assert json.loads(outputs)["ok"] is True


def test_read_only_command_comes_before_a_destructive_one() -> None:
    [found] = compositions(make_app(), "read-then-change")
    assert found.commands == ("find", "delete")
    assert found.lines[1].startswith("people delete") and "--dry-run" in found.lines[1]


def test_pages_and_dry_runs() -> None:
    app = make_app()
    [pages] = compositions(app, "pages")
    assert pages.lines == ("people find --json", "people find --cursor CURSOR --json")
    [dry_run] = compositions(app, "dry-run")
    first, last = dry_run.lines
    assert first.endswith("--dry-run --json") and last.endswith("--apply TOKEN --yes --json")


def test_documents_contain_the_compositions() -> None:
    app_info = collect_app_info(make_app())
    assert "people find --jsonl | people count - --json" in render_skill_md(app_info)
    manifest = build_manifest(app_info)
    kinds = {composition["kind"] for composition in manifest["compositions"]}
    assert kinds == {"pipe", "read-then-change", "pages", "dry-run"}
    count = manifest["commands"]["count"]["pipe"]
    assert count["input"]["format"] == "jsonl"
    assert count["input"]["schema"]["required"] == ["name"]
    assert "pipe" not in manifest["commands"]["find"]


def test_command_without_compositions_adds_no_section() -> None:
    app = Tooli("t")

    @app.command()
    def add(a: int, b: int) -> int:
        return a + b

    assert "## Workflows" not in render_skill_md(collect_app_info(app))


# ------------------------------------------------------------------ contracts


def test_contracts_follow_from_the_types() -> None:
    tools = {tool.name: tool for tool in make_app().catalog}
    read = {name: contract and contract.format for name, contract in contracts(tools, pipe_input)}
    assert read == {
        **dict.fromkeys(("find", "first", "delete")),
        "count": "jsonl",
        "total": "jsonl",
        "show": "json",
        "words": "text",
    }
    written = dict(contracts(tools, pipe_output))
    assert [written[name].format for name in ("find", "first", "delete")] == [
        *("jsonl", "json", "text"),
    ]


def contracts(tools: dict[str, Any], read: Any) -> list[Any]:
    return [(name, read(tool)) for name, tool in tools.items()]


def test_declared_contract_replaces_the_inferred_one() -> None:
    app = Tooli("t")

    @app.command(pipe_output={"format": "csv", "description": "Orders."})
    def report() -> None:
        print("a,b")

    @app.command(pipe_input="csv")
    def load(data: StdinOr[str]) -> int:
        return len(data)

    [report_tool, load_tool] = app.catalog
    assert pipe_output(report_tool).to_dict() == {"format": "csv", "description": "Orders."}
    assert pipe_input(load_tool).to_dict() == {"format": "csv"}
    [found] = compositions(app, "pipe")
    assert found.commands == ("report", "load")
    manifest = build_manifest(collect_app_info(app))
    assert manifest["commands"]["report"]["pipe"]["output"]["format"] == "csv"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("xml", "must be one of jsonl, json, csv, text"),
        ({"formt": "csv"}, "no 'formt'; did you mean 'format'?"),
        ({"format": "csv", "schema": 1}, "'schema' of a pipe contract"),
        ({"format": "csv", "description": 1}, "'description' of a pipe contract"),
        (3, "must be one of"),
    ],
)
def test_invalid_contract_is_a_definition_error(value: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message.replace("?", r"\?")):
        Tooli("t").command(pipe_input=value)


NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NUMBERED = {"type": "object", "properties": {"name": {"type": "integer"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (PipeContract("jsonl", NAMED), PipeContract("jsonl", NAMED), True),
        (PipeContract("json", NAMED), PipeContract("jsonl", NAMED), True),
        (PipeContract("jsonl", NAMED), PipeContract("json", NAMED), False),
        (PipeContract("jsonl", NUMBERED), PipeContract("jsonl", NAMED), False),
        (PipeContract("jsonl", {}), PipeContract("jsonl", NAMED), False),
        (PipeContract("jsonl", NAMED), PipeContract("jsonl", {}), False),
        (PipeContract("text"), PipeContract("jsonl", NAMED), False),
        (PipeContract("csv", is_declared=True), PipeContract("csv", is_declared=True), True),
    ],
)
def test_contracts_fit(source: PipeContract, target: PipeContract, expected: bool) -> None:
    assert can_pipe(source, target) is expected
