"""Tools for Pydantic AI: a toolset.

`Tool.from_schema` passes arguments on unchanged. What a model can mend comes back to it as a
retry; what it cannot, as a failure that uses up none of its tries.
"""

from __future__ import annotations

from tooli.views.export.code import Raw, call
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
    """The module `NAME_pydantic_ai.py`."""
    tools = entries(order)
    running = runner(order, tools, waits=True)
    use = filled(_USE, {"module": f"{order.base}_pydantic_ai"})
    toolset = call(
        "FunctionToolset", Raw("TOOLS"), before=27, id=order.base, max_retries=Raw("RETRIES")
    )
    text = module(
        heading(order, "as a toolset for Pydantic AI", use, ENVELOPE),
        imports_of(running, "json"),
        ["from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolFailed"],
        running.app,
        f"{running.constants}\nRETRIES = 3  # how often in a row a model may mend a call",
        [*running.functions, filled(_MAKE, blanks(order, tools))],
        [
            *[made(order, entry) for entry in tools],
            f"{all_of(tools, 'Tool')}\ntoolset = {toolset}",
        ],
    )
    return {f"{order.base}_pydantic_ai.py": text}


_USE = """
    from pydantic_ai import Agent
    from $module import toolset

    agent = Agent(model, toolsets=[toolset])
"""

_MAKE = '''
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
