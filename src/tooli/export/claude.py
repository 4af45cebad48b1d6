"""Tools for the Claude Agent SDK: an MCP server within the agent's own process.

The SDK holds arguments to the schema before the tool sees them, and says so in its own words.
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
from tooli.export.python_source import SourceText, call_source, value_literal
from tooli.export.runner_source import build_runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.export.export_spec import ExportSpec


def render(spec: ExportSpec) -> dict[str, str]:
    """The module `NAME_claude.py`."""
    tools = exported_tools(spec)
    runner = build_runner(spec, tools, is_async=True)
    name_prefix = f"mcp__{spec.module_stem}__"
    read_only_names = [
        f"{name_prefix}{entry.name}" for entry in tools if entry.tool.behavior.read_only
    ]
    version = spec.app_info.version or "0"
    server = call_source(
        "create_sdk_mcp_server", spec.module_stem, version, SourceText("TOOLS"), columns_before=9
    )
    use = fill_template(
        _USAGE_TEMPLATE, {"module": f"{spec.module_stem}_claude", "server": spec.module_stem}
    )
    text = render_module(
        module_docstring(spec, "as tools for the Claude Agent SDK", use, ENVELOPE_NOTE),
        standard_imports(runner, "json"),
        [_SDK_IMPORT],
        runner.app,
        runner.constants,
        [*runner.functions, fill_template(_MAKE_TOOL_TEMPLATE, make_tool_values(spec, tools))],
        [
            *[tool_assignment(spec, entry, hints=_hints(entry.tool)) for entry in tools],
            f"{tools_list(tools, 'SdkMcpTool[Any]')}\nREAD_ONLY = {value_literal(read_only_names, columns_before=12)}\n"
            f"server = {server}",
        ],
    )
    return {f"{spec.module_stem}_claude.py": text}


def _hints(tool: Tool) -> SourceText:
    """What the SDK should know of a tool's behaviour, where it would guess otherwise."""
    behavior = tool.behavior
    hints: dict[str, bool] = {}
    if behavior.read_only:
        hints["readOnlyHint"] = True
    else:
        hints["destructiveHint"] = behavior.destructive
    if behavior.idempotent:
        hints["idempotentHint"] = True
    hints["openWorldHint"] = behavior.open_world
    return SourceText(call_source("ToolAnnotations", depth=1, columns_before=7, **hints))


_SDK_IMPORT = (
    "from claude_agent_sdk import SdkMcpTool, ToolAnnotations, create_sdk_mcp_server, tool"
)

_USAGE_TEMPLATE = """
    from claude_agent_sdk import ClaudeAgentOptions
    from $module import READ_ONLY, server

    options = ClaudeAgentOptions(mcp_servers={"$server": server}, allowed_tools=READ_ONLY)
"""

_MAKE_TOOL_TEMPLATE = '''
def make_tool(
    name: str,
    $target: $kind,
    *,
    description: str,
    schema: dict[str, Any],
    hints: ToolAnnotations,
    timeout: float = TIMEOUT,$flags
) -> SdkMcpTool[Any]:
    """One tool: its content is the envelope, as text."""

    @tool(name, description, schema, hints)
    async def invoke(arguments: dict[str, Any]) -> dict[str, Any]:
        envelope = await call($target, arguments, timeout$given)
        text = json.dumps(envelope, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}], "is_error": not envelope["ok"]}

    return invoke
'''
