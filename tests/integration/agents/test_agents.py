"""Real agent programs use an app: skill, MCP server, command line, permission rules.

Each program runs offline against a scripted model. The assertions are about what its model
receives.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.integration.agents.programs import (
    CLAUDE_CODE,
    CODEX,
    PROGRAMS,
    RULED_PROGRAMS,
    Program,
    Workplace,
)
from tests.integration.agents.scripted_model import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.agents.scripted_model import Conversation, ScriptedModel

DESCRIPTION = "Find items by a part of their name"


class Session(NamedTuple):
    """A finished run of a program, and the files of the project before and after it."""

    program: Program
    model: ScriptedModel
    before: dict[str, bytes]
    installed: dict[str, bytes]
    removed: dict[str, bytes]


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: program.agent)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Install the app, run the program with every tool allowed, and remove the app."""
    program: Program = request.param
    place = Workplace(program, tmp_path_factory.mktemp(program.agent))
    before = place.project_files()
    place.shop("skills", "add", "--agent", program.agent)
    place.register_server()
    installed = place.project_files()
    model = place.run(
        [
            program.call("find", text="tea"),
            program.call("find", txt="tea"),
            program.call("sales"),
            program.call("stock"),
            program.run_in_shell("shop detect-context --json"),
            program.run_in_shell("shop find --text tea --json"),
            program.call("log"),
            program.run_in_shell("shop log --json"),
            program.run_in_shell("shop log --jsonl"),
            program.call("report"),
        ],
        *program.allow_all,
    )
    place.register_server("remove")
    place.shop("skills", "remove", "--agent", program.agent)
    return Session(program, model, before, installed, place.project_files())


def text_of(session: Session, index: int) -> str:
    """Return the result of a call, as the model received it."""
    text = session.model.results[index]
    assert text is not None, session.model.output
    return text


def envelope_in(text: str) -> dict[str, Any]:
    """Return the JSON document in the output of a shell tool."""
    if '\\"ok\\"' in text:  # Gemini CLI and Cline send a JSON string in a JSON document
        document = json.loads(text)
        text = document["output"] if isinstance(document, dict) else document[0]["result"]
    (document,) = re.findall(r'\{"ok".*\}', text, re.DOTALL)
    return json.loads(document)


def test_skill_is_in_the_instructions(session: Session) -> None:
    assert session.program.skill_text in session.model.instructions


def test_tools_of_the_server_are_listed(session: Session) -> None:
    tools = session.model.tools
    names = [session.program.tool.format(name) for name in ("find", "sales", "stock")]
    assert set(names) <= tools.keys(), session.model.output
    assert DESCRIPTION in json.dumps(tools[names[0]])
    assert '"text"' in json.dumps(tools[names[0]])


def test_result_of_the_server_reaches_the_model(session: Session) -> None:
    text = text_of(session, 0)
    assert re.search(r"green tea\W+black tea", text)
    assert text.count("green tea") == 1  # not also as text, beside the structured content
    assert "rice" not in text


def test_error_reaches_the_model(session: Session) -> None:
    text = text_of(session, 1)
    if session.program.validates_arguments:
        assert "additional properties" in text
    else:
        assert "E1004" in text and "did you mean 'text'?" in text


def test_page_and_its_cursor_reach_the_model(session: Session) -> None:
    sales = text_of(session, 2)
    assert re.search(r"\W+sale\W+99\W+price\W+198\b", sales)
    assert re.search(r"next_cursor\W+\w+", sales) and re.search(r"total\W+250\b", sales)


def test_warning_reaches_the_model(session: Session) -> None:
    stock = text_of(session, 3)
    assert re.search(r"\W+items\W+3\b", stock)
    assert "the count is from yesterday" in stock


def test_caller_is_recognized_on_the_command_line(session: Session) -> None:
    context = envelope_in(text_of(session, 4))["result"]
    assert (context["caller_id"], context["is_agent"]) == (session.program.caller, True)


def test_command_line_answers_in_json(session: Session) -> None:
    assert envelope_in(text_of(session, 5))["result"] == ["green tea", "black tea"]


def test_long_result_of_the_server_is_cut_at_a_record(session: Session) -> None:
    text = text_of(session, 6)
    assert re.search(r"next_cursor\W+\w+", text) and re.search(r"total\W+5000\b", text)
    shown = int(re.findall(r"shown\W+(\d+)", text)[0])
    assert re.findall(r"entry\W+(\d{5})", text) == [f"{number:05}" for number in range(shown)]


def test_long_result_of_the_command_line_is_cut_at_a_record(session: Session) -> None:
    """The program passes on the whole answer, because tooli knows its limit."""
    answer = envelope_in(text_of(session, 7))
    truncated = answer["meta"]["truncated"]
    assert (truncated["total"], truncated["by"]) == (5000, "caller")
    assert [row["entry"] for row in answer["result"]] == [
        f"{number:05}" for number in range(truncated["shown"])
    ]
    assert answer["meta"]["page"]["next_cursor"]


def test_long_lines_of_records_are_cut_at_a_record(session: Session) -> None:
    text = text_of(session, 8)
    shown = int(re.findall(r"Cut by caller: (\d+) records", text)[0])
    assert re.findall(r'"entry\W+(\d{5})', text) == [f"{number:05}" for number in range(shown)]


def test_meta_of_a_tool_applies_in_claude_code(session: Session) -> None:
    """It has the tool at its start, and shows the whole result that the tool asks for."""
    if session.program is not CLAUDE_CODE:
        pytest.skip("only Claude Code reads this meta")
    first = next(one for one in session.model.conversations if one.tools)
    loaded = [name for name in first.tools if name.startswith("mcp__shop__")]
    assert loaded == ["mcp__shop__report"]
    assert text_of(session, 9).count("all is well") == 7_000


def test_search_hint_finds_a_tool_in_claude_code(tmp_path: Path) -> None:
    """The hint is no part of the tool's name and description."""
    place = Workplace(CLAUDE_CODE, tmp_path)
    place.register_server()

    def search(conversation: Conversation) -> Answer:
        if conversation.tools and "search" not in conversation.results:
            return Answer("search", "ToolSearch", {"query": "restocking", "max_results": 1})
        return Answer()

    model = place.run([], *CLAUDE_CODE.allow_all, answer=search)
    found = [one.results["search"] for one in model.conversations if "search" in one.results]
    assert "mcp__shop__add" in found[0], model.output


def test_remove_restores_the_project(session: Session) -> None:
    changed = {path for path, text in session.installed.items() if session.before.get(path) != text}
    assert session.program.project_settings[0] in changed
    assert any(path.endswith("skills/shop/SKILL.md") for path in changed)
    assert session.removed == session.before


# ------------------------------------------------------------------ permission rules


@pytest.fixture(scope="module", params=RULED_PROGRAMS, ids=lambda program: program.agent)
def ruled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Run the program with the permission rules of the app, and with nobody to ask."""
    program: Program = request.param
    place = Workplace(program, tmp_path_factory.mktemp(f"{program.agent}-rules"))
    before = place.project_files()
    place.register_server()
    start = place.change_rules()
    installed = place.project_files()
    model = place.run(
        [
            program.call("find", text="tea"),
            program.call("wipe"),
            program.run_in_shell("shop find --text tea --json"),
            program.run_in_shell("shop wipe"),
            program.run_in_shell("shop --json wipe"),
            program.call("add", name="salt"),  # OpenCode ends after a question that nobody answers
        ],
        start=start,
    )
    place.change_rules("--remove")
    place.register_server("remove")
    return Session(program, model, before, installed, place.project_files())


def test_rules_allow_a_tool(ruled: Session) -> None:
    assert "green tea" in text_of(ruled, 0)


def test_rules_deny_a_tool(ruled: Session) -> None:
    """A denied tool is refused, or the model does not see it."""
    text = ruled.model.results[1]
    assert text is None or re.search("denied|permission", text.lower()), text
    assert "deleted" not in (text or "")
    assert "all items were deleted" not in ruled.model.output


def test_rules_allow_a_command_line(ruled: Session) -> None:
    text = text_of(ruled, 2)
    if ruled.program.rules_in_shell:
        assert envelope_in(text)["result"] == ["green tea", "black tea"]
    else:
        assert "green tea" not in text  # Copilot CLI asks about every command


def test_rules_deny_a_command_line(ruled: Session) -> None:
    text = text_of(ruled, 3)
    assert "deleted" not in text, text
    assert re.search("denied|polic|permission|prevents|rejected", text.lower()), text


def test_flags_before_the_command_do_not_bypass_rules(ruled: Session) -> None:
    text = text_of(ruled, 4)
    if ruled.program is CODEX:
        pytest.skip("Codex matches the words of a rule from the start of the line only")
    assert "deleted" not in text, text


def test_rules_ask_about_a_tool(ruled: Session) -> None:
    """Nobody answers the question, so the tool does not run."""
    text = ruled.model.results[5]
    assert "added salt" not in (text or "")
    assert text is not None or "salt" in ruled.model.output


def test_removing_the_rules_restores_the_project(ruled: Session) -> None:
    assert ruled.installed != ruled.before
    assert ruled.removed == ruled.before
