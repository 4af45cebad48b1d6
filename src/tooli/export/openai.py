"""Tools for the OpenAI Agents SDK.

`FunctionTool` with the schema as it is: what the SDK derives from annotations makes every
parameter required, and refuses objects that are open.
"""

from __future__ import annotations

from tooli.export.export_spec import exported_tools
from tooli.export.module_source import (
    ENVELOPE_NOTE,
    fill_template,
    make_tool_values,
    module_docstring,
    render_module,
    standard_imports,
    tool_assignment,
    tools_list,
)
from tooli.export.runner_source import build_runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.export.export_spec import ExportSpec


def render(spec: ExportSpec) -> dict[str, str]:
    """The module `NAME_openai.py`."""
    tools = exported_tools(spec)
    runner = build_runner(spec, tools, is_async=True, other_code=_MAKE_TOOL_TEMPLATE)
    use = fill_template(_USAGE_TEMPLATE, {"module": f"{spec.module_stem}_openai"})
    text = render_module(
        module_docstring(spec, "as tools for the OpenAI Agents SDK", use, ENVELOPE_NOTE),
        standard_imports(runner, "json"),
        ["from agents import FunctionTool, Tool", "from agents.tool_context import ToolContext"],
        runner.app,
        runner.constants,
        [*runner.functions, fill_template(_MAKE_TOOL_TEMPLATE, make_tool_values(spec, tools))],
        [
            *[tool_assignment(spec, entry) for entry in tools],
            tools_list(tools, "Tool"),
        ],
    )
    return {f"{spec.module_stem}_openai.py": text}


_USAGE_TEMPLATE = """
    from agents import Agent
    from $module import TOOLS

    agent = Agent(name="assistant", tools=TOOLS)
"""

_MAKE_TOOL_TEMPLATE = '''
def make_tool(
    name: str,
    $target: $kind,
    *,
    description: str,
    schema: dict[str, Any],
    timeout: float = TIMEOUT,$flags
) -> FunctionTool:
    """One tool: the model's JSON goes to the app as it is, and the envelope back as JSON."""

    async def invoke(context: ToolContext[Any], text: str) -> str:
        try:
            arguments = dict(json.loads(text or "{}"))
        except (TypeError, ValueError) as error:
            envelope = failure("E1008", f"Not a JSON object: {error}")
        else:
            envelope = await call($target, arguments, timeout$given)
        return json.dumps(envelope, ensure_ascii=False)

    return FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,  # the schema says which parameters may be left out
    )
'''
