"""Tools for Pydantic AI: a toolset.

`Tool.from_schema` passes arguments on unchanged. What a model can mend comes back to it as a
retry; what it cannot, as a failure that uses up none of its tries.
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
from tooli.export.python_source import SourceText, call_source
from tooli.export.runner_source import build_runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.export.export_spec import ExportSpec


def render(spec: ExportSpec) -> dict[str, str]:
    """The module `NAME_pydantic_ai.py`."""
    tools = exported_tools(spec)
    runner = build_runner(spec, tools, is_async=True)
    use = fill_template(_USAGE_TEMPLATE, {"module": f"{spec.module_stem}_pydantic_ai"})
    toolset = call_source(
        "FunctionToolset",
        SourceText("TOOLS"),
        columns_before=27,
        id=spec.module_stem,
        max_retries=SourceText("RETRIES"),
    )
    text = render_module(
        module_docstring(spec, "as a toolset for Pydantic AI", use, ENVELOPE_NOTE),
        standard_imports(runner, "json"),
        ["from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolFailed"],
        runner.app,
        f"{runner.constants}\nRETRIES = 3  # how often in a row a model may mend a call",
        [*runner.functions, fill_template(_MAKE_TOOL_TEMPLATE, make_tool_values(spec, tools))],
        [
            *[tool_assignment(spec, entry) for entry in tools],
            f"{tools_list(tools, 'Tool')}\ntoolset = {toolset}",
        ],
    )
    return {f"{spec.module_stem}_pydantic_ai.py": text}


_USAGE_TEMPLATE = """
    from pydantic_ai import Agent
    from $module import toolset

    agent = Agent(model, toolsets=[toolset])
"""

_MAKE_TOOL_TEMPLATE = '''
def make_tool(
    name: str,
    $target: $kind,
    *,
    description: str,
    schema: dict[str, Any],
    timeout: float = TIMEOUT,$flags
) -> Tool:
    """One tool: it returns the envelope, or raises it as what the model should make of it."""

    async def invoke(context: RunContext[Any], /, **arguments: Any) -> dict[str, Any]:
        envelope = await call($target, arguments, timeout$given)
        if envelope["ok"]:
            return envelope
        error = envelope["error"]
        text = json.dumps(envelope, ensure_ascii=False)
        asks = error.get("suggestion", {}).get("action") == "ask_human"
        if error["is_retryable"] and not asks and not context.last_attempt:
            raise ModelRetry(text)
        raise ToolFailed(text)  # one retry too many would end the run

    return Tool.from_schema(invoke, name, description, schema, takes_ctx=True)
'''
