"""Twelve tasks on an app with random names, solved in real agent programs over MCP.

The solver is mechanical. It sees only what the program shows to its model: it chooses the tool and
the properties whose descriptions share the most words with the task, follows cursors and plans, and
does what the suggestion of an error says.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.integration.agents import programs
from tests.integration.agents.harbour import JOURNAL
from tests.integration.agents.programs import CLAUDE_CODE, CODEX, Program, Workplace
from tests.integration.agents.scripted_model import Answer, Conversation

Json = dict[str, Any]
MAX_CALLS = 12  # of one task


class Task(NamedTuple):
    """A task: its words, the words and values of its details, and what its last answer contains."""

    words: str
    details: dict[str, Any]
    expected: str
    is_agreed: bool = False  # a human has agreed to it
    is_planned: bool = False  # a dry run comes first


TASKS = (
    Task("all vessels in the harbour, until vessel number 137", {}, r"vessel-959\b"),
    Task("free berths", {"quay": "south"}, "south-2"),
    Task("weather forecast", {"date": "2027-03-09", "each hour": True}, r"wind\W+9(\W+9){23}"),
    Task(
        "add a newly built boat to the register",
        {"written on the bow": "Ida", "long in metres": 120, "carries no cargo": True},
        "done: .*Ida.*120.*true",
    ),
    Task("order tugs", {"how many tugs": 2, "captains": ["Bo", "Al"]}, r"done: .*2.*Bo\W+Al"),
    Task("fee paid", {"money in euros": 12.5, "receipt": True}, "done: .*12.5.*true"),
    Task("scrap the old wreck", {"hull number": 77}, "done: .*77", is_agreed=True),
    Task("evacuate warehouse", {"warehouse": "W3"}, "done: .*W3", is_agreed=True, is_planned=True),
    Task("count containers", {"weigh tonnes": 20}, "980.*three containers were not weighed"),
    Task(
        "send a radio message",
        {"say": "fog", "who hears": ["Ida", "Eva"], "interrupt traffic": True},
        r"done: .*fog.*Ida\W+Eva.*true",
    ),
    Task("diary of the harbour master, the incident with the crane", {}, "storm damaged crane 9"),
    Task(
        "close the gate",
        {"closes": "22:00", "opens again": "06:30", "tell the public": "ice"},
        "done: .*22:00:00.*06:30:00.*ice",
    ),
)
RECOVERY = Task("free berths", {"quay": "nortth"}, "north-2")


def words_of(text: str) -> set[str]:
    """Return the words of a text without their endings."""
    return {re.sub("(s|ed|ing)$", "", word) for word in re.findall(r"\w\w+", text.lower())}


def similarity(first: str, second: str) -> int:
    return len(words_of(first) & words_of(second) - {"the", "of", "in", "an", "for", "it", "with"})


def find_best(words: str, texts: dict[str, str]) -> str | None:
    """Return the key of the text that shares the most words with `words`."""
    best = max(texts, key=lambda key: similarity(words, texts[key]), default=None)
    return best if best is not None and similarity(words, texts[best]) else None


class Solver:
    """Answers the requests of an agent program: one tool call after the other."""

    def __init__(self, tasks: tuple[Task, ...], prefix: str) -> None:
        self.prefix = prefix
        self.calls: list[list[Json]] = [[] for _ in tasks]  # the arguments of each task's calls
        self.results: list[list[str]] = [[] for _ in tasks]
        self.tasks = tasks

    def __call__(self, conversation: Conversation) -> Answer:
        if not conversation.tools:
            return Answer()  # a request for a title
        for number, task in enumerate(self.tasks):
            calls, results = self.calls[number], self.results[number]
            at = len(calls) - 1
            if len(results) < len(calls) and f"task{number}call{at}" in conversation.results:
                results.append(conversation.results[f"task{number}call{at}"])
            search_id = f"search{number}"
            if "ToolSearch" in conversation.tools and search_id not in conversation.results:
                query = " ".join(["+shop", *re.findall(r"\w{4,}", task.words)])
                return Answer(search_id, "ToolSearch", {"query": query, "max_results": 5})
            name = self._find_tool(task, conversation)
            arguments = self._next_arguments(number, conversation.tools.get(name or "", {}))
            if name is not None and arguments is not None and len(calls) < MAX_CALLS:
                calls.append(arguments)
                return Answer(f"task{number}call{len(calls) - 1}", name, arguments)
        return Answer()

    def _find_tool(self, task: Task, conversation: Conversation) -> str | None:
        described = {
            name: str(tool.get("description"))
            for name, tool in conversation.tools.items()
            if name.startswith(self.prefix)
        }
        return find_best(task.words, described)

    def _next_arguments(self, number: int, tool: Json) -> Json | None:
        """Return the arguments of the next call of a task; None if it is finished."""
        task, calls, results = self.tasks[number], self.calls[number], self.results[number]
        if not calls:
            schema: Json = tool.get("parameters") or tool.get("input_schema") or {}
            arguments = self._fill(schema, task.details)
            if task.is_planned:
                return {**arguments, "dry_run": True}
            return {**arguments, "yes": True} if task.is_agreed else arguments
        text = results[-1].replace("\\", "")
        if re.search(task.expected, text, re.DOTALL):
            return None
        if '"ok":false' in text:
            found = re.search(r'"suggestion":\{.*?"arguments":(\{.*?\})', text)
            return json.loads(found[1]) if found else None
        first = {name: value for name, value in calls[0].items() if name != "dry_run"}
        token, cursor = (
            re.search(rf'"{name}":"([\w.-]+)"', text) for name in ("token", "next_cursor")
        )
        if token:
            return {**first, "apply": token[1], "yes": True}
        return {**first, "cursor": cursor[1]} if cursor else None

    def _fill(self, schema: Json, details: Json) -> Json:
        """Return arguments: each detail is the value of the property that describes it best."""
        arguments: Json = {}
        properties: Json = schema.get("properties", {})
        for name, part in properties.items():
            if "properties" in part:
                arguments[name] = self._fill(part, details)
        described = {name: part.get("description", "") for name, part in properties.items()}
        for words, value in details.items():
            name = find_best(words, described)
            if name is not None and name not in arguments:
                arguments[name] = value
        return arguments


class Solved(NamedTuple):
    """What the solver has done, and what the app has recorded."""

    solver: Solver
    output: str
    journal: list[Json]


@pytest.fixture(scope="module", params=[CODEX, CLAUDE_CODE], ids=lambda program: program.agent)
def solved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Solved:
    program: Program = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "APP", Path(__file__).with_name("harbour.py"))
        place = Workplace(program, tmp_path_factory.mktemp(f"{program.agent}-tasks"))
        place.register_server()
        prefix = program.tool.format("")
        solver = Solver((*TASKS, RECOVERY), prefix)
        model = place.run([], *program.allow_all, answer=solver)
    journal = (place.home / JOURNAL).read_text().splitlines()
    return Solved(solver, model.output, [json.loads(line) for line in journal])


def test_tasks_are_solved_without_a_wrong_call(solved: Solved) -> None:
    """At least 11 of 12: each call returns a result, and the last one has what was wanted."""
    failed: list[str] = []
    for task, calls, results in zip(
        TASKS, solved.solver.calls, solved.solver.results, strict=False
    ):
        texts = [result.replace("\\", "") for result in results]
        is_right = bool(texts) and re.search(task.expected, texts[-1], re.DOTALL)
        if not is_right or any(['"ok":false' in text for text in texts]):
            failed.append(f"{task.words}: {calls} {[text[-400:] for text in texts]}")
    assert len(failed) <= 1, "\n".join(failed) + solved.output[-500:]


def test_number_of_calls(solved: Solved) -> None:
    """One call for each task, and one more for each page and each plan."""
    counts = [len(calls) for calls in solved.solver.calls[: len(TASKS)]]
    pages = {0, 10}  # the tasks with several pages
    for number, count in enumerate(counts):
        if number not in pages:
            assert count == 1 + TASKS[number].is_planned, (TASKS[number].words, counts)


def test_each_change_was_made_once(solved: Solved) -> None:
    commands = [line["command"] for line in solved.journal]
    assert sorted(commands) == sorted(
        ["close", "evacuate", "fee", "message", "register", "scrap", "tugs"]
    )


def test_error_leads_to_the_right_call(solved: Solved) -> None:
    first, second = solved.solver.results[-1]
    assert '"ok":false' in first.replace("\\", "")
    assert re.search(RECOVERY.expected, second)
