"""Command lines for documents."""

from __future__ import annotations

import pytest
from tests.describe.apps import make_callback_app

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.describe.calls import (
    drop_broken_examples,
    format_command_line,
    sample_arguments,
    shortest_call,
)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["a b"], "t find 'a b' --json"),
        (["x", "--json"], "t find x --json"),
        (["--", "-x"], "t find --json -- -x"),
    ],
)
def test_flags_are_inserted_before_the_separator(argv: list[str], line: str) -> None:
    app = Tooli("t")
    app.command("find")(lambda: None)
    app.command("other")(lambda: None)
    tool = app.find("find")
    assert tool is not None
    assert format_command_line("t", tool, argv, "--json") == line


def test_sample_arguments_contain_chosen_values() -> None:
    app = Tooli("t")

    @app.command()
    def copy(source: str, target: str, mode: str = "fast", other: int = 3) -> None: ...

    tool = app.find("copy")
    assert tool is not None
    assert sample_arguments(tool, {"source": "-", "mode": "slow"}) == [
        *("-", sample_arguments(tool)[1], "--mode", "slow"),
    ]


def test_framework_flags_that_a_command_has_itself_are_spelled_out() -> None:
    app = Tooli("t")

    @app.command(annotations=Destructive)
    def wipe(name: str, yes: bool = False, json: bool = False) -> str:
        return name

    @app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def run(name: str) -> str:
        return name

    wipe_tool, run_tool = app.find("wipe"), app.find("run")
    assert wipe_tool is not None and run_tool is not None
    line = format_command_line("t", wipe_tool, ["x"], "--yes", "--dry-run", "--json")
    assert line == "t wipe x --tooli-yes --dry-run --tooli-json"
    assert shortest_call("uvx t", run_tool) == "uvx t run NAME --tooli-json"


def test_broken_examples_are_dropped() -> None:
    app = Tooli("t")

    @app.command(examples=[{"args": ["a"]}, {"args": ["a", "--nope"]}])
    def find(name: str) -> str:
        return name

    tool = app.find("find")
    assert tool is not None
    kept, problems = drop_broken_examples(app, tool)
    assert kept.guidance.examples == ({"args": ["a"]},)
    assert len(problems) == 1 and "'a --nope' does not work" in problems[0]
    assert drop_broken_examples(app, kept) == (kept, [])


def test_call_has_the_required_options_of_callbacks() -> None:
    tools = {tool.key: tool for tool in make_callback_app().catalog}
    line = shortest_call("safe", tools["box.open"])
    assert line == "safe --token TOKEN box open 1 --json"
