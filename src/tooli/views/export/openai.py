"""Tools for the OpenAI Agents SDK.

`FunctionTool` with the schema as it is: what the SDK derives from annotations makes every
parameter required, and refuses objects that are open.
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
    from tooli.views.export.order import Order


def render(order: Order) -> dict[str, str]:
    """The module `NAME_openai.py`."""
    tools = entries(order)
    running = runner(order, tools, waits=True, more=_MAKE)
    use = filled(_USE, {"module": f"{order.base}_openai"})
    text = module(
        heading(order, "as tools for the OpenAI Agents SDK", use, ENVELOPE),
        imports_of(running, "json"),
        ["from agents import FunctionTool, Tool", "from agents.tool_context import ToolContext"],
        running.app,
        running.constants,
        [*running.functions, filled(_MAKE, blanks(order, tools))],
        [
            *[made(order, entry) for entry in tools],
            all_of(tools, "Tool"),
        ],
    )
    return {f"{order.base}_openai.py": text}


_USE = """
    from agents import Agent
    from $module import TOOLS

    agent = Agent(name="assistant", tools=TOOLS)
"""

_MAKE = '''
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
