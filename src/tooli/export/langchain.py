"""Tools for LangChain and LangGraph.

`StructuredTool` with the schema as it is: LangChain then passes arguments on unchanged, and
the app's own checks, which know what was probably meant, are the only ones.
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
    from tooli.export.export_spec import ExportedTool, ExportSpec

RESERVED_PARAMETERS = ("callbacks", "config", "run_manager", "self")
"""Parameters that a LangChain tool cannot have: it is called with them itself."""


def render(spec: ExportSpec) -> dict[str, str]:
    """The module `NAME_langchain.py`."""
    tools = exported_tools(spec)
    renamed = any([_parameter_aliases(entry) for entry in tools])
    runner = build_runner(spec, tools, is_async=False)
    use = fill_template(_USAGE_TEMPLATE, {"module": f"{spec.module_stem}_langchain"})
    fill = {
        **make_tool_values(spec, tools),
        "aliases": "\n    aliases: dict[str, str] | None = None," if renamed else "",
        "arguments": _RENAME_CODE if renamed else "",
    }
    text = render_module(
        module_docstring(spec, "as tools for LangChain and LangGraph", use, ENVELOPE_NOTE),
        standard_imports(runner, "json"),
        ["from langchain_core.tools import BaseTool, StructuredTool, ToolException"],
        runner.app,
        runner.constants,
        [*runner.functions, fill_template(_MAKE_TOOL_TEMPLATE, fill)],
        [
            *[_tool_assignment(spec, entry) for entry in tools],
            tools_list(tools, "BaseTool"),
        ],
    )
    return {f"{spec.module_stem}_langchain.py": text}


def _parameter_aliases(entry: ExportedTool) -> dict[str, str]:
    """The names that a tool's parameters have instead of those that LangChain keeps for itself."""
    own = entry.schema.get("properties", {})
    return {f"{name}_": name for name in RESERVED_PARAMETERS if name in own}


def _tool_assignment(spec: ExportSpec, entry: ExportedTool) -> str:
    aliases = _parameter_aliases(entry)
    if not aliases:
        return tool_assignment(spec, entry)
    other = {name: alias for alias, name in aliases.items()}
    own = entry.schema["properties"]
    schema = {
        **entry.schema,
        "properties": {other.get(name, name): part for name, part in own.items()},
    }
    required: list[str] = entry.schema.get("required", [])
    if required:
        schema["required"] = [other.get(name, name) for name in required]
    return tool_assignment(spec, entry.replace(schema=schema), aliases=aliases)


_USAGE_TEMPLATE = """
    from langchain.agents import create_agent
    from $module import TOOLS

    agent = create_agent(model, tools=TOOLS)
"""

_RENAME_CODE = """\
        names = aliases or {}
        arguments = {names.get(name, name): value for name, value in arguments.items()}
"""

_MAKE_TOOL_TEMPLATE = '''
def make_tool(
    name: str,
    $target: $kind,
    *,
    description: str,
    schema: dict[str, Any],
    timeout: float = TIMEOUT,$flags$aliases
) -> StructuredTool:
    """One tool: its message is the envelope, its artifact the result."""

    def invoke(**arguments: Any) -> tuple[str, Any]:
$arguments        envelope = call($target, arguments, timeout$given)
        text = json.dumps(envelope, ensure_ascii=False)
        if not envelope["ok"]:
            raise ToolException(text)  # the one exception that reaches the model
        return text, envelope.get("result")

    return StructuredTool.from_function(
        func=invoke,
        name=name,
        description=description,
        args_schema=schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
'''
