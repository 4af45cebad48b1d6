"""Tests for an export: every tool is there, and answers in an envelope whatever happens.

They call the tools as the framework does, without a model.
"""

from __future__ import annotations

from tooli.views.examples import arguments_of
from tooli.views.export.code import Raw, call, docstring, text
from tooli.views.export.module import filled, target_of
from tooli.views.export.order import entries

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.views.export.order import Entry, Order


def render(order: Order) -> dict[str, str]:
    """The file with the tests."""
    module = _module(order)
    file = module.partition(".")[0]
    tools = entries(order)
    tests = _of_functions(order, tools) if order.target == "python" else _of_tools(order, tools)
    if not order.in_process:
        waits = order.target not in ("langchain", "python")
        run = (
            "asyncio.run(export.call([], {}, timeout))" if waits else "export.call([], {}, timeout)"
        )
        tests.append(filled(_BROKEN, {"call": run}))
    if order.target == "adk":
        tests.append(filled(_YAML, {"package": file}))
    source = "\n\n\n".join([_opening(order, module, "\n".join(tests)), *tests]) + "\n"
    return {f"test_{file}.py": source}


def _module(order: Order) -> str:
    """The module that is tested."""
    if order.target == "adk":
        return f"adk_{order.base}.tools"
    ending = "api" if order.target == "python" else order.target.replace("-", "_")
    return f"{order.base}_{ending}"


def _opening(order: Order, module: str, used: str) -> str:
    about = f"Tests of {module}.\n\nThey need pytest and {order.title}, but no model."
    standard = [f"import {name}" for name in ("asyncio", "json", "sys") if f"{name}." in used]
    standard += ["from pathlib import Path"] if "Path(" in used else []
    standard += ["from types import SimpleNamespace"] if "SimpleNamespace(" in used else []
    standard += ["from typing import Any"] if "Any" in used else []
    others = ["import pytest", *_IMPORTS.get(order.target, ())]
    own = f"import {module} as export"
    blocks = ["from __future__ import annotations", "\n".join(standard), "\n".join(others), own]
    return "\n\n".join([docstring(about), *filter(None, blocks)])


# ------------------------------------------------------------------ tools of a framework


def _of_tools(order: Order, tools: list[Entry]) -> list[str]:
    tests = [_ANSWER + _ANSWERS[order.target].rstrip(), _REFUSED.strip()]
    found = _examples(tools)
    if found:
        marks = call("@pytest.mark.parametrize", ("tool", "arguments"), found)
        name = text(f"{order.portrait.name}.")
        tests.append(f"{marks}\n{filled(_EXAMPLE, {'app': name})}")
    return [test.strip("\n") for test in tests]


def _examples(tools: list[Entry]) -> list[Any]:
    """The examples of tools that only look, as arguments."""
    return [
        (Raw(f"export.{entry.variable}"), arguments)
        for entry in tools
        for example in entry.tool.guidance.examples
        if entry.tool.behavior.read_only
        and (arguments := arguments_of(entry.tool, example.get("args", ()))) is not None
    ]


_IMPORTS = {
    "adk": ("from google.adk.agents.config_agent_utils import from_config",),
    "copilot": ("from copilot import ToolInvocation",),
    "pydantic-ai": ("from pydantic_ai import ModelRetry, ToolFailed",),
}

_ANSWER = '''
def answer(tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The envelope that a model gets to see."""'''

_ANSWERS = {
    "openai": """
    return json.loads(asyncio.run(tool.on_invoke_tool(None, json.dumps(arguments))))
""",
    "langchain": """
    call = {"type": "tool_call", "name": tool.name, "id": "1", "args": arguments}
    return json.loads(tool.invoke(call).content)
""",
    "adk": """
    return asyncio.run(tool.run_async(args=arguments, tool_context=None))
""",
    "claude": """
    return json.loads(asyncio.run(tool.handler(arguments))["content"][0]["text"])
""",
    "copilot": """
    result = asyncio.run(tool.handler(ToolInvocation(arguments=arguments)))
    return json.loads(result.text_result_for_llm)
""",
    "pydantic-ai": """
    try:
        return asyncio.run(tool.function(SimpleNamespace(last_attempt=False), **arguments))
    except (ModelRetry, ToolFailed) as failure:
        return json.loads(failure.message)
""",
}

_REFUSED = """
@pytest.mark.parametrize("tool", export.TOOLS, ids=lambda tool: tool.name)
def test_what_does_not_fit_is_refused(tool: Any) -> None:
    envelope = answer(tool, {"no_such_argument": 1})
    assert envelope["ok"] is False
    assert envelope["error"]["code"] == "E1004"
"""

_EXAMPLE = """
def test_an_example_is_answered_by_the_app_itself(tool: Any, arguments: dict[str, Any]) -> None:
    assert answer(tool, arguments)["meta"]["tool"].startswith($app)
"""

_YAML = """
def test_the_agent_can_be_loaded() -> None:
    agent = from_config(str(Path(__file__).parent / "$package" / "root_agent.yaml"))
    assert agent.name.isidentifier()
"""

_BROKEN = """
@pytest.mark.parametrize(
    ("program", "timeout", "code"),
    [
        (["no-such-program"], 60.0, "E4040"),
        ([sys.executable, "-c", "print('no JSON')"], 60.0, "E4040"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], 0.5, "E4050"),
    ],
)
def test_a_program_that_fails_is_answered_for(
    program: list[str], timeout: float, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "COMMAND", program)
    envelope = $call
    assert envelope["error"]["code"] == code
"""

# ------------------------------------------------------------------ functions


def _of_functions(order: Order, tools: list[Entry]) -> list[str]:
    targets = [target_of(order, entry) for entry in tools]
    name = "name" if order.in_process else "words"
    marks = call("@pytest.mark.parametrize", name, targets)
    there = call("@pytest.mark.parametrize", "name", [entry.variable for entry in tools])
    return [
        f"{there}\n{_THERE.strip()}",
        f"{marks}\n{(_CALLED if order.in_process else _RUN).strip()}",
    ]


_THERE = """
def test_the_function_is_there(name: str) -> None:
    assert callable(getattr(export, name))
"""

_CALLED = """
def test_what_does_not_fit_is_refused(name: str) -> None:
    error = export.app.call(name, no_such_argument=1).error
    assert error is not None
    assert error.code == "E1004"
"""

_RUN = """
def test_what_does_not_fit_is_refused(words: list[str]) -> None:
    with pytest.raises(export.CommandError) as caught:
        export.run(words, {"no_such_argument": 1})
    assert caught.value.code == "E1004"
"""
