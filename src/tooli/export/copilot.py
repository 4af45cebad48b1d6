"""Tools for the GitHub Copilot SDK."""

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

BUILT_IN_TOOLS = frozenset(
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


def render(spec: ExportSpec) -> dict[str, str]:
    """The module `NAME_copilot.py`."""
    tools = exported_tools(spec)
    clashes = any([entry.name in BUILT_IN_TOOLS for entry in tools])
    runner = build_runner(spec, tools, is_async=True)
    use = fill_template(_USAGE_TEMPLATE, {"module": f"{spec.module_stem}_copilot"})
    fill = {
        **make_tool_values(spec, tools),
        "overrides": "\n    overrides: bool = False," if clashes else "",
        "overriding": "\n        overrides_built_in_tool=overrides," if clashes else "",
    }
    made_tools = [
        tool_assignment(spec, entry, overrides=True)
        if entry.name in BUILT_IN_TOOLS
        else tool_assignment(spec, entry)
        for entry in tools
    ]
    text = render_module(
        module_docstring(spec, "as tools for the GitHub Copilot SDK", use, ENVELOPE_NOTE),
        standard_imports(runner, "json"),
        ["from copilot import Tool, ToolInvocation, ToolResult"],
        runner.app,
        runner.constants,
        [*runner.functions, fill_template(_MAKE_TOOL_TEMPLATE, fill)],
        [
            *made_tools,
            tools_list(tools, "Tool"),
        ],
    )
    return {f"{spec.module_stem}_copilot.py": text}


_USAGE_TEMPLATE = """
    from copilot import CopilotClient
    from $module import TOOLS

    async with CopilotClient() as client:
        session = await client.create_session(tools=TOOLS)
"""

_MAKE_TOOL_TEMPLATE = '''
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
