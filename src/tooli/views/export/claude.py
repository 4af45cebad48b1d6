"""Tools for the Claude Agent SDK: an MCP server within the agent's own process.

The SDK holds arguments to the schema before the tool sees them, and says so in its own words.
"""

from __future__ import annotations

from tooli.views.export.code import Raw, call, literal
from tooli.views.export.module import (
    ENVELOPE,
    all_of,
    blanks,
    filled,
    heading,
    imports_of,
    made,
    module,
)
from tooli.views.export.order import entries
from tooli.views.export.runner import runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.contract.tool import Tool
    from tooli.views.export.order import Order


def render(order: Order) -> dict[str, str]:
    """The module `NAME_claude.py`."""
    tools = entries(order)
    running = runner(order, tools, waits=True)
    room = f"mcp__{order.base}__"
    safe = [f"{room}{entry.name}" for entry in tools if entry.tool.behavior.read_only]
    version = order.portrait.version or "0"
    server = call("create_sdk_mcp_server", order.base, version, Raw("TOOLS"), before=9)
    use = filled(_USE, {"module": f"{order.base}_claude", "server": order.base})
    text = module(
        heading(order, "as tools for the Claude Agent SDK", use, ENVELOPE),
        imports_of(running, "json"),
        [_IMPORT],
        running.app,
        running.constants,
        [*running.functions, filled(_MAKE, blanks(order, tools))],
        [
            *[made(order, entry, hints=_hints(entry.tool)) for entry in tools],
            f"{all_of(tools, 'SdkMcpTool[Any]')}\nREAD_ONLY = {literal(safe, before=12)}\n"
            f"server = {server}",
        ],
    )
    return {f"{order.base}_claude.py": text}


def _hints(tool: Tool) -> Raw:
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
    return Raw(call("ToolAnnotations", depth=1, before=7, **hints))


_IMPORT = "from claude_agent_sdk import SdkMcpTool, ToolAnnotations, create_sdk_mcp_server, tool"

_USE = """
    from claude_agent_sdk import ClaudeAgentOptions
    from $module import READ_ONLY, server

    options = ClaudeAgentOptions(mcp_servers={"$server": server}, allowed_tools=READ_ONLY)
"""

_MAKE = '''
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
