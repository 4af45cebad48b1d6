"""Tools for LangChain and LangGraph.

`StructuredTool` with the schema as it is: LangChain then passes arguments on unchanged, and
the app's own checks, which know what was probably meant, are the only ones.
"""

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
    from tooli.views.export.order import Entry, Order

RESERVED = ("callbacks", "config", "run_manager", "self")
"""Parameters that a LangChain tool cannot have: it is called with them itself."""


def render(order: Order) -> dict[str, str]:
    """The module `NAME_langchain.py`."""
    tools = entries(order)
    renamed = any([_renamed(entry) for entry in tools])
    running = runner(order, tools, waits=False)
    use = filled(_USE, {"module": f"{order.base}_langchain"})
    fill = {
        **blanks(order, tools),
        "aliases": "\n    aliases: dict[str, str] | None = None," if renamed else "",
        "arguments": _RENAMING if renamed else "",
    }
    text = module(
        heading(order, "as tools for LangChain and LangGraph", use, ENVELOPE),
        imports_of(running, "json"),
        ["from langchain_core.tools import BaseTool, StructuredTool, ToolException"],
        running.app,
        running.constants,
        [*running.functions, filled(_MAKE, fill)],
        [
            *[_made(order, entry) for entry in tools],
            all_of(tools, "BaseTool"),
        ],
    )
    return {f"{order.base}_langchain.py": text}


def _renamed(entry: Entry) -> dict[str, str]:
    """The names that a tool's parameters have instead of those that LangChain keeps for itself."""
    own = entry.schema.get("properties", {})
    return {f"{name}_": name for name in RESERVED if name in own}


def _made(order: Order, entry: Entry) -> str:
    aliases = _renamed(entry)
    if not aliases:
        return made(order, entry)
    other = {name: alias for alias, name in aliases.items()}
    own = entry.schema["properties"]
    schema = {
        **entry.schema,
        "properties": {other.get(name, name): part for name, part in own.items()},
    }
    required: list[str] = entry.schema.get("required", [])
    if required:
        schema["required"] = [other.get(name, name) for name in required]
    return made(order, entry.replace(schema=schema), aliases=aliases)


_USE = """
    from langchain.agents import create_agent
    from $module import TOOLS

    agent = create_agent(model, tools=TOOLS)
"""

_RENAMING = """\
        names = aliases or {}
        arguments = {names.get(name, name): value for name, value in arguments.items()}
"""

_MAKE = '''
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
