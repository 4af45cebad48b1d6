"""Tests for an export: every tool is there, and answers in an envelope whatever happens.

They call the tools as the framework does, without a model.
"""

from __future__ import annotations

from tooli.describe.example_arguments import parse_example
from tooli.export.export_spec import exported_tools
from tooli.export.module_source import call_target, fill_template
from tooli.export.python_source import SourceText, call_source, docstring, string_literal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.export.export_spec import ExportedTool, ExportSpec


def render(spec: ExportSpec) -> dict[str, str]:
    """The file with the tests."""
    module = _module_under_test(spec)
    file = module.partition(".")[0]
    tools = exported_tools(spec)
    tests = _function_tests(spec, tools) if spec.target == "python" else _tool_tests(spec, tools)
    if not spec.is_in_process:
        is_async = spec.target not in ("langchain", "python")
        run = (
            "asyncio.run(export.call([], {}, timeout))"
            if is_async
            else "export.call([], {}, timeout)"
        )
        tests.append(fill_template(_BROKEN_PROGRAM_TEST, {"call": run}))
    if spec.target == "adk":
        tests.append(fill_template(_AGENT_YAML_TEST, {"package": file}))
    source = "\n\n\n".join([_file_header(spec, module, "\n".join(tests)), *tests]) + "\n"
    return {f"test_{file}.py": source}


def _module_under_test(spec: ExportSpec) -> str:
    """The module that is tested."""
    if spec.target == "adk":
        return f"adk_{spec.module_stem}.tools"
    ending = "api" if spec.target == "python" else spec.target.replace("-", "_")
    return f"{spec.module_stem}_{ending}"


def _file_header(spec: ExportSpec, module: str, test_source: str) -> str:
    about = f"Tests of {module}.\n\nThey need pytest and {spec.title}, but no model."
    standard = [
        f"import {name}" for name in ("asyncio", "json", "sys") if f"{name}." in test_source
    ]
    standard += ["from pathlib import Path"] if "Path(" in test_source else []
    standard += ["from types import SimpleNamespace"] if "SimpleNamespace(" in test_source else []
    standard += ["from typing import Any"] if "Any" in test_source else []
    others = ["import pytest", *_FRAMEWORK_IMPORTS.get(spec.target, ())]
    own = f"import {module} as export"
    blocks = ["from __future__ import annotations", "\n".join(standard), "\n".join(others), own]
    return "\n\n".join([docstring(about), *filter(None, blocks)])


# ------------------------------------------------------------------ tools of a framework


def _tool_tests(spec: ExportSpec, tools: list[ExportedTool]) -> list[str]:
    tests = [_ANSWER_HEAD + _ANSWER_BODIES[spec.target].rstrip(), _REFUSAL_TEST.strip()]
    found = _example_cases(tools)
    if found:
        decorator = call_source("@pytest.mark.parametrize", ("tool", "arguments"), found)
        name = string_literal(f"{spec.app_info.name}.")
        tests.append(f"{decorator}\n{fill_template(_EXAMPLE_TEST, {'app': name})}")
    return [test.strip("\n") for test in tests]


def _example_cases(tools: list[ExportedTool]) -> list[Any]:
    """The examples of tools that only look, as arguments."""
    return [
        (SourceText(f"export.{entry.variable}"), arguments)
        for entry in tools
        for example in entry.tool.guidance.examples
        if entry.tool.behavior.read_only
        and (arguments := parse_example(entry.tool, example.get("args", ()))) is not None
    ]


_FRAMEWORK_IMPORTS = {
    "adk": ("from google.adk.agents.config_agent_utils import from_config",),
    "copilot": ("from copilot import ToolInvocation",),
    "pydantic-ai": ("from pydantic_ai import ModelRetry, ToolFailed",),
}

_ANSWER_HEAD = '''
def answer(tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The envelope that a model gets to see."""'''

_ANSWER_BODIES = {
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

_REFUSAL_TEST = """
@pytest.mark.parametrize("tool", export.TOOLS, ids=lambda tool: tool.name)
def test_what_does_not_fit_is_refused(tool: Any) -> None:
    envelope = answer(tool, {"no_such_argument": 1})
    assert envelope["ok"] is False
    assert envelope["error"]["code"] == "E1004"
"""

_EXAMPLE_TEST = """
def test_an_example_is_answered_by_the_app_itself(tool: Any, arguments: dict[str, Any]) -> None:
    assert answer(tool, arguments)["meta"]["tool"].startswith($app)
"""

_AGENT_YAML_TEST = """
def test_the_agent_can_be_loaded() -> None:
    agent = from_config(str(Path(__file__).parent / "$package" / "root_agent.yaml"))
    assert agent.name.isidentifier()
"""

_BROKEN_PROGRAM_TEST = """
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


def _function_tests(spec: ExportSpec, tools: list[ExportedTool]) -> list[str]:
    targets = [call_target(spec, entry) for entry in tools]
    name = "name" if spec.is_in_process else "words"
    decorator = call_source("@pytest.mark.parametrize", name, targets)
    exists_decorator = call_source(
        "@pytest.mark.parametrize", "name", [entry.variable for entry in tools]
    )
    return [
        f"{exists_decorator}\n{_FUNCTION_EXISTS_TEST.strip()}",
        f"{decorator}\n{(_IN_PROCESS_REFUSAL_TEST if spec.is_in_process else _SUBPROCESS_REFUSAL_TEST).strip()}",
    ]


_FUNCTION_EXISTS_TEST = """
def test_the_function_is_there(name: str) -> None:
    assert callable(getattr(export, name))
"""

_IN_PROCESS_REFUSAL_TEST = """
def test_what_does_not_fit_is_refused(name: str) -> None:
    error = export.app.call(name, no_such_argument=1).error
    assert error is not None
    assert error.code == "E1004"
"""

_SUBPROCESS_REFUSAL_TEST = """
def test_what_does_not_fit_is_refused(words: list[str]) -> None:
    with pytest.raises(export.CommandError) as caught:
        export.run(words, {"no_such_argument": 1})
    assert caught.value.code == "E1004"
"""
