"""Generate tests for an export. They check that every tool exists and returns an envelope.

The tests call the tools as the framework does, without a model.
"""

from __future__ import annotations

from tooli.describe.schema_text import parse_example
from tooli.export.export_spec import exported_tools
from tooli.export.module_source import call_target, fill_template, module_path
from tooli.export.python_source import SourceText, call_source, docstring, string_literal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.export.export_spec import ExportedTool, ExportSpec
    from tooli.export.frameworks import Framework


def render_tests(spec: ExportSpec, framework: Framework | None) -> dict[str, str]:
    """Return the test file of an export. Without a framework, it tests the Python functions."""
    path = module_path(spec, framework) if framework else f"{spec.module_stem}_api.py"
    module = path.removesuffix(".py").replace("/", ".")
    file = module.partition(".")[0]
    tools = exported_tools(spec)
    tests = _tool_tests(spec, framework, tools) if framework else _function_tests(spec, tools)
    if not spec.is_in_process:
        call = "export.call([], {}, timeout)"
        call = f"asyncio.run({call})" if framework and framework.is_async else call
        tests.append(fill_template(_BROKEN_PROGRAM_TEST, {"call": call}))
    if spec.target == "adk":
        tests.append(fill_template(_AGENT_YAML_TEST, {"package": file}))
    others = framework.test_imports if framework else ()
    header = _file_header(spec, module, others, "\n".join(tests))
    return {f"test_{file}.py": "\n\n\n".join([header, *tests]) + "\n"}


def _file_header(
    spec: ExportSpec, module: str, framework_imports: tuple[str, ...], test_source: str
) -> str:
    summary = f"Tests of {module}.\n\nThey need pytest and {spec.title}, but no model."
    standard = [
        f"import {name}" for name in ("asyncio", "json", "sys") if f"{name}." in test_source
    ]
    standard += ["from pathlib import Path"] if "Path(" in test_source else []
    standard += ["from types import SimpleNamespace"] if "SimpleNamespace(" in test_source else []
    standard += ["from typing import Any"] if "Any" in test_source else []
    others = ["import pytest", *framework_imports]
    own = f"import {module} as export"
    blocks = ["from __future__ import annotations", "\n".join(standard), "\n".join(others), own]
    return "\n\n".join([docstring(summary), *filter(None, blocks)])


# ------------------------------------------------------------------ tools of a framework


def _tool_tests(spec: ExportSpec, framework: Framework, tools: list[ExportedTool]) -> list[str]:
    tests = [_ANSWER_HEAD + framework.test_body.rstrip(), _INVALID_ARGUMENT_TEST]
    cases = _example_cases(tools)
    if cases:
        decorator = call_source("@pytest.mark.parametrize", ("tool", "arguments"), cases)
        prefix = string_literal(f"{spec.app_info.name}.")
        tests.append(f"{decorator}\n{fill_template(_EXAMPLE_TEST, {'prefix': prefix})}")
    return [test.strip("\n") for test in tests]


def _example_cases(tools: list[ExportedTool]) -> list[Any]:
    """Return the examples of read-only tools as pairs of tool and arguments."""
    return [
        (SourceText(f"export.{entry.variable}"), arguments)
        for entry in tools
        for example in entry.tool.guidance.examples
        if entry.tool.behavior.read_only
        and (arguments := parse_example(entry.tool, example.get("args", ()))) is not None
    ]


_ANSWER_HEAD = '''
def answer(tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope that the model gets."""'''

_INVALID_ARGUMENT_TEST = """
@pytest.mark.parametrize("tool", export.TOOLS, ids=lambda tool: tool.name)
def test_rejects_unknown_argument(tool: Any) -> None:
    envelope = answer(tool, {"no_such_argument": 1})
    assert envelope["ok"] is False
    assert envelope["error"]["code"] == "E1004"
"""

_EXAMPLE_TEST = """
def test_example_reaches_the_app(tool: Any, arguments: dict[str, Any]) -> None:
    assert answer(tool, arguments)["meta"]["tool"].startswith($prefix)
"""

_AGENT_YAML_TEST = """
def test_agent_loads() -> None:
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
def test_broken_program_returns_a_failure(
    program: list[str], timeout: float, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "COMMAND", program)
    envelope = $call
    assert envelope["error"]["code"] == code
"""

# ------------------------------------------------------------------ Python functions


def _function_tests(spec: ExportSpec, tools: list[ExportedTool]) -> list[str]:
    names = [entry.variable for entry in tools]
    targets = [call_target(spec, entry) for entry in tools]
    parameter = "command" if spec.is_in_process else "command_path"
    test = _IN_PROCESS_ARGUMENT_TEST if spec.is_in_process else _SUBPROCESS_ARGUMENT_TEST
    return [
        f"{call_source('@pytest.mark.parametrize', 'name', names)}\n{_FUNCTION_TEST.strip()}",
        f"{call_source('@pytest.mark.parametrize', parameter, targets)}\n{test.strip()}",
    ]


_FUNCTION_TEST = """
def test_function_exists(name: str) -> None:
    assert callable(getattr(export, name))
"""

_IN_PROCESS_ARGUMENT_TEST = """
def test_rejects_unknown_argument(command: str) -> None:
    error = export.app.call(command, no_such_argument=1).error
    assert error is not None
    assert error.code == "E1004"
"""

_SUBPROCESS_ARGUMENT_TEST = """
def test_rejects_unknown_argument(command_path: list[str]) -> None:
    with pytest.raises(export.CommandError) as caught:
        export.run(command_path, {"no_such_argument": 1})
    assert caught.value.code == "E1004"
"""
