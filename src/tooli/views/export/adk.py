"""A package for Google's ADK: tools, and an agent in YAML that ADK's own loader takes.

Tools of our own class, and not plain functions: a function's annotations cannot say all that
the schema says, and ADK checks for missing arguments in words of its own.
"""

from __future__ import annotations

from tooli.views.export.code import docstring
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

MODEL = "gemini-3.5-flash"


def render(order: Order) -> dict[str, str]:
    """The package `adk_NAME`."""
    package = f"adk_{order.base}"
    tools = entries(order)
    running = runner(order, tools, waits=True)
    text = module(
        heading(order, "as tools for Google's ADK", filled(_USE, {"package": package}), ENVELOPE),
        imports_of(running),
        [
            "from google.adk.tools import BaseTool, ToolContext",
            "from google.genai.types import FunctionDeclaration",
        ],
        running.app,
        running.constants,
        [*running.functions, filled(_CLASS, _blanks(order, tools))],
        [
            *[made(order, entry, "AppTool") for entry in tools],
            all_of(tools, "BaseTool"),
        ],
    )
    about = f"{order.title} as an agent for Google's ADK: root_agent.yaml, with tools.py."
    return {
        f"{package}/__init__.py": docstring(about) + "\n",
        f"{package}/root_agent.yaml": _agent(order, package, tools),
        f"{package}/tools.py": text,
    }


def _blanks(order: Order, tools: list[Entry]) -> dict[str, str]:
    fill = blanks(order, tools)
    flags = bool(fill["flags"])
    return {
        **fill,
        "flags": "\n        flags: tuple[str, ...] = ()," if flags else "",
        "kept": "\n        self.flags = flags" if flags else "",
        "given": ", self.flags" if flags else "",
    }


def _agent(order: Order, package: str, tools: list[Entry]) -> str:
    """The agent: what it is for, and its tools."""
    about = _line(order.portrait.description)
    plain = about.replace("{", "(").replace("}", ")")  # ADK would look for a {name} in its state
    told = [line for line in (plain, *_INSTRUCTIONS) if line]
    lines = [
        f"# {_line(order.title)} as an agent for Google's ADK. Made by tooli; to make it again:",
        f"#     {_line(order.again)}",
        "agent_class: LlmAgent",
        f"name: {order.base}_agent",
        f"model: {_quoted(order.model or MODEL)}",
        f"description: {_quoted(about or order.portrait.name)}",
        "instruction: |-",
        *[f"  {line}" for line in told],
        "tools:",
        *[f"  - name: {package}.tools.{entry.variable}" for entry in tools],
    ]
    return "\n".join(lines) + "\n"


def _line(value: str) -> str:
    return " ".join(value.split())


def _quoted(value: str) -> str:
    """A text as YAML takes it on one line: JSON's quotes are YAML's, too."""
    from json import dumps

    plain = value.replace("-", "").replace(".", "").isalnum()
    return value if plain and value[0].isalpha() else dumps(value, ensure_ascii=False)


_INSTRUCTIONS = (
    "Every tool answers with an envelope: ok and result, or ok: false and an error.",
    "Where an error has a suggestion, follow it; where it says ask_human, ask the user.",
)

_USE = """
    from google.adk.agents import LlmAgent
    from $package.tools import TOOLS

    agent = LlmAgent(name="assistant", model="...", tools=TOOLS)

root_agent.yaml is such an agent: adk run $package
"""

_CLASS = '''
class AppTool(BaseTool):
    """One tool: the model's arguments go to the app as they are, and the envelope back."""

    def __init__(
        self,
        name: str,
        $target: $kind,
        *,
        description: str,
        schema: dict[str, Any],
        timeout: float = TIMEOUT,$flags
    ) -> None:
        super().__init__(name=name, description=description)
        self.$target = $target
        self.schema = schema
        self.timeout = timeout$kept

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self.schema,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return await call(self.$target, args, self.timeout$given)
'''
