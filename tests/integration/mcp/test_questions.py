"""Questions in the code of a command (`input`, `typer.confirm`), on every interface."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.integration.app_process import APPS, PROCESS_TIMEOUT, environment, parse_json
from tests.integration.mcp.stdio_client import (
    HANDSHAKE_VERSION,
    STATELESS_VERSION,
    failure_of,
    serve_command,
)
from tests.integration.mcp_http.http_process import run_server

ASKING = APPS / "asking.py"

each_version = pytest.mark.parametrize("version", [HANDSHAKE_VERSION, STATELESS_VERSION])
QUESTIONS = {
    "remove": ({"target": "x"}, "Remove x?"),
    "keep": ({"target": "x"}, "Remove x?"),
    "greet": ({}, "Your name"),
    "size": ({}, "How many"),
    "paint": ({}, "Which color"),
    "line": ({}, "Text"),
    "aline": ({}, "Text"),
    "secret": ({}, "Secret"),
    "rich_line": ({}, "Which"),
    "limited": ({}, "Text"),
    "printing": ({"target": "x"}, "Remove x?"),
}
"""The arguments of each command, and what it asks first."""


class User:
    """Fills in the forms of the server."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.forms: list[Any] = []

    async def answer(self, context: Any, params: Any) -> types.ElicitResult:
        self.forms.append(params)
        answer = self._answers.pop(0)
        if isinstance(answer, str) and answer in ("decline", "cancel"):
            return types.ElicitResult(action=answer)  # type: ignore[arg-type]
        name = next(iter(params.requested_schema["properties"]))
        return types.ElicitResult(action="accept", content={name: answer})


def client_for(version: str, user: User | None = None) -> Client:
    command, *args = serve_command(ASKING)
    server = StdioServerParameters(command=command, args=args, env=environment())
    mode: Any = "legacy" if version == HANDSHAKE_VERSION else "auto"
    callbacks: dict[str, Any] = {} if user is None else {"elicitation_callback": user.answer}
    return Client(stdio_client(server), mode=mode, **callbacks)


def error_of(result: Any) -> dict[str, Any]:
    return failure_of(result.model_dump(by_alias=True, exclude_none=True, mode="json"))


def value_of(result: Any) -> Any:
    assert not result.is_error, result
    value = result.structured_content
    if value is None:
        return "".join([block.text for block in result.content])
    return value["result"] if isinstance(value, dict) else value


def check_error(error: dict[str, Any], question: str) -> None:
    assert error["code"] == "E1038", error
    assert error["message"] == f"The command asks {question!r}, and nobody can answer."
    assert error["is_retryable"] is False
    assert error["suggestion"]["fix"]


@each_version
async def test_client_without_forms_gets_the_error(version: str) -> None:
    async with client_for(version) as client:
        for name, (arguments, question) in QUESTIONS.items():
            check_error(error_of(await client.call_tool(name, arguments)), question)
        error = error_of(await client.call_tool("remove", {"target": "x"}))
        assert error["suggestion"]["arguments"] == {"target": "x", "force": True}
        error = error_of(await client.call_tool("keep", {"target": "x"}))
        assert error["suggestion"]["arguments"] == {"target": "x", "yes": True}
        error = error_of(await client.call_tool("greet", {}))
        assert error["suggestion"]["arguments"] == {"name": "<name>"}
        assert value_of(await client.call_tool("keep", {"target": "x", "yes": True})) == "removed"


@each_version
@pytest.mark.parametrize(
    ("tool", "arguments", "answers", "expected"),
    [
        ("remove", {"target": "x"}, [True], "removed x"),
        ("keep", {"target": "x"}, [False], "kept"),
        ("keep", {"target": "x"}, ["decline"], "kept"),
        ("greet", {}, ["Ada"], "Hello Ada"),
        ("greet", {"name": "Bo"}, [], "Hello Bo"),
        ("size", {}, [5], 5),
        ("paint", {}, ["blue"], "blue"),
        ("line", {}, ["a b"], "a b"),
        ("line", {}, [""], ""),
        ("rich_line", {}, ["b", True], "b True"),
        ("limited", {}, ["slow"], "slow"),
        ("printing", {"target": "x"}, [True], "Remove x? [y/N]: y\nremoved x"),
    ],
)
async def test_user_of_the_client_answers(
    version: str, tool: str, arguments: dict[str, Any], answers: list[Any], expected: object
) -> None:
    user = User(*answers)
    async with client_for(version, user) as client:
        assert value_of(await client.call_tool(tool, arguments)) == expected
    assert len(user.forms) == len(answers)


@each_version
async def test_refused_and_invalid_answers(version: str) -> None:
    user = User("cancel", "cancel", "many", "", True)
    async with client_for(version, user) as client:
        assert error_of(await client.call_tool("keep", {"target": "x"}))["code"] == "E2103"
        assert error_of(await client.call_tool("line", {}))["code"] == "E2103"
        assert error_of(await client.call_tool("size", {}))["code"] == "E1003"
        assert error_of(await client.call_tool("greet", {}))["code"] == "E1038"
        check_error(error_of(await client.call_tool("secret", {})), "Secret")  # never in a form
        assert value_of(await client.call_tool("keep", {"target": "x"})) == "removed"


def test_http() -> None:
    with (
        run_server(ASKING, interface=("api",)) as server,
        httpx.Client(timeout=PROCESS_TIMEOUT) as client,
    ):
        for name, (arguments, question) in QUESTIONS.items():
            answer = client.post(f"{server.url}/tools/{name.replace('_', '-')}", json=arguments)
            assert answer.status_code == 422
            check_error(answer.json()["error"], question)
        answer = client.post(f"{server.url}/tools/keep?yes=true", json={"target": "x"})
        assert answer.json()["result"] == "removed"


PYTHON_CODE = """
import json, sys
sys.path.insert(0, {folder!r})
from asking import app
questions = json.loads({questions!r})
surface = app.options(**json.loads({options!r}))
answers = {{}}
for name, (arguments, _) in questions.items():
    answers[name] = surface.call(name.replace("_", "-"), **arguments).to_dict()
print("ANSWERS" + json.dumps(answers), file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("options", [{}, {"no_input": True}], ids=["eof", "no-input"])
def test_python(options: dict[str, Any]) -> None:
    """Stdin is at its end, or an open pipe that is silent."""
    code = PYTHON_CODE.format(
        folder=str(APPS), questions=json.dumps(QUESTIONS), options=json.dumps(options)
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdin=subprocess.PIPE if options else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if b"ANSWERS" in line)
        answers = json.loads(line.partition(b"ANSWERS")[2])
    finally:
        process.communicate(timeout=PROCESS_TIMEOUT)
    for name, (_, question) in QUESTIONS.items():
        error = answers[name]["error"]
        assert (error["code"], error["is_retryable"]) == ("E1038", False), name
        if options:
            check_error(error, question)


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_command_line(name: str) -> None:
    arguments, question = QUESTIONS[name]
    command = [sys.executable, str(ASKING), name.replace("_", "-"), *arguments.values(), "--json"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), check=False
    )
    assert done.returncode == 2
    check_error(parse_json(done.stdout)["error"], question)


@pytest.mark.parametrize("flags", [["--json"], ["--text"]])
def test_yes_on_the_command_line(flags: list[str]) -> None:
    command = [sys.executable, str(ASKING), "keep", "x", "--yes", *flags]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), check=True
    )
    assert b"removed" in done.stdout
