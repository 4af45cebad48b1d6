"""Tools for the GitHub Copilot SDK."""

from __future__ import annotations

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
    from tooli.views.export.order import Order

BUILT_IN = frozenset(
    (
        *("apply_patch", "ask_user", "bash", "context_board", "create", "edit", "exit_plan_mode"),
        *("fetch_copilot_cli_documentation", "glob", "grep", "list_agents", "list_bash"),
        *("list_powershell", "powershell", "read_agent", "read_bash", "read_powershell"),
        *("report_intent", "rg", "search_code_subagent", "send_inbox", "show_file", "skill"),
        *("sql", "stop_bash", "stop_powershell", "store_memory", "str_replace_editor", "task"),
        *("task_complete", "update_todo", "view", "vote_memory", "web_fetch", "web_search"),
        *("write_agent", "write_bash", "write_powershell"),
    )
)
"""Copilot's own tools: a session with another of the same name does not start unless it is said."""


def render(order: Order) -> dict[str, str]:
    """The module `NAME_copilot.py`."""
    tools = entries(order)
    clashes = any([entry.name in BUILT_IN for entry in tools])
    running = runner(order, tools, waits=True)
    use = filled(_USE, {"module": f"{order.base}_copilot"})
    fill = {
        **blanks(order, tools),
        "overrides": "\n    overrides: bool = False," if clashes else "",
        "overriding": "\n        overrides_built_in_tool=overrides," if clashes else "",
    }
    made_tools = [
        made(order, entry, overrides=True) if entry.name in BUILT_IN else made(order, entry)
        for entry in tools
    ]
    text = module(
        heading(order, "as tools for the GitHub Copilot SDK", use, ENVELOPE),
        imports_of(running, "json"),
        ["from copilot import Tool, ToolInvocation, ToolResult"],
        running.app,
        running.constants,
        [*running.functions, filled(_MAKE, fill)],
        [
            *made_tools,
            all_of(tools, "Tool"),
        ],
    )
    return {f"{order.base}_copilot.py": text}


_USE = """
    from copilot import CopilotClient
    from $module import TOOLS

    async with CopilotClient() as client:
        session = await client.create_session(tools=TOOLS)
"""

_MAKE = '''
def make_tool(
    name: str,
    $target: $kind,
    *,
    description: str,
    schema: dict[str, Any],
    timeout: float = TIMEOUT,$flags$overrides
) -> Tool:
    """One tool: its text is the envelope."""

    async def invoke(invocation: ToolInvocation) -> ToolResult:
        arguments = dict(invocation.arguments or {})
        envelope = await call($target, arguments, timeout$given)
        text = json.dumps(envelope, ensure_ascii=False)
        if envelope["ok"]:
            return ToolResult(text_result_for_llm=text)
        message = envelope["error"]["message"]
        return ToolResult(text_result_for_llm=text, result_type="failure", error=message)

    return Tool(
        name=name,
        description=description,
        handler=invoke,
        parameters=schema,$overriding
    )
'''
