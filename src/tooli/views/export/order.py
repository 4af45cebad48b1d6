"""Order: what is to be exported, and how; Entry: one tool of it, as generated code names it."""

from __future__ import annotations

from tooli.contract.record import Record
from tooli.contract.schema import input_schema
from tooli.views.export.code import identifier
from tooli.views.mcp import arguments_schema
from tooli.views.schema import named, text_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.views.portrait import Portrait

TIMEOUT = 120.0
"""Seconds that a tool may take, where it does not say so itself."""

CONFIRMING = ("yes", "dry_run")
"""What the model may say about a destructive tool, beside the tool's own arguments."""

RESERVED = frozenset(
    (
        *("CALLER", "COMMAND", "READ_ONLY", "RETRIES", "FIXES", "TIMEOUT", "TOOLS"),
        *("Any", "AppTool", "BaseTool", "CommandError", "FunctionDeclaration", "FunctionTool"),
        *(
            "FunctionToolset",
            "Literal",
            "ModelRetry",
            "Path",
            "RunContext",
            "SdkMcpTool",
            "Sequence",
        ),
        *("StructuredTool", "Tool", "ToolAnnotations", "ToolContext", "ToolException"),
        *("ToolFailed", "ToolInvocation", "ToolResult", "TypedDict", "annotations", "app"),
        *("asyncio", "bool", "call", "create_sdk_mcp_server", "dict", "envelope_of", "export"),
        *("failure", "float", "getattr", "given", "hasattr", "int", "isinstance", "json", "list"),
        *("make_tool", "os", "queue", "run", "server", "signal", "stop", "str", "subprocess"),
        *("super", "threading", "tool", "toolset", "tuple"),
    )
)
"""What generated modules call their own: no variable for a tool is called so."""


class Order(Record):
    """An app, and how its tools are to be reached from a framework's code."""

    portrait: Portrait
    target: str
    mode: str  # "subprocess" | "import"
    command: tuple[str, ...]  # what starts the program
    home: tuple[str, str]  # the module that has the app, and its name there
    caller: str  # what the framework is called where callers are told apart
    again: str  # the command that makes the same files
    model: str | None = None

    @property
    def in_process(self) -> bool:
        """Whether the tools run in the framework's own process."""
        return self.mode == "import"

    @property
    def title(self) -> str:
        """The app and its version."""
        return " ".join(f"{self.portrait.name} {self.portrait.version or ''}".split())

    @property
    def base(self) -> str:
        """The app's name, as modules have it."""
        words = identifier(self.portrait.name.lower()).split("_")
        return identifier("_".join([*filter(None, words)]) or "app")


class Entry(Record):
    """One tool: what the model sees, and what is run for it."""

    tool: Tool
    name: str  # for the model
    variable: str  # in the generated module
    description: str
    schema: dict[str, Any]
    flags: tuple[str, ...]  # of CONFIRMING, those that the model may say beside the arguments
    timeout: float | None


def entries(order: Order) -> list[Entry]:
    """The tools of an app, in its order."""
    found: list[Entry] = []
    used = {*RESERVED}
    for name, tool in named(order.portrait.tools).items():
        variable = identifier(name, used)
        used.add(variable)
        own, schema = input_schema(tool), arguments_schema(tool)
        added = schema.get("properties", {}).keys() - own.get("properties", {}).keys()
        flags = tuple([flag for flag in CONFIRMING if flag in added])
        if "apply" in added:  # a generated program has no way to say the token of a plan
            fields = {k: v for k, v in schema["properties"].items() if k != "apply"}
            schema = {**schema, "properties": fields}
        about = description_of(tool)
        found.append(Entry(tool, name, variable, about, schema, flags, tool.limits.timeout))
    return found


def description_of(tool: Tool) -> str:
    """What a model is told about a tool: what it does, when to use it, what stands in its way."""
    said = [text_of(tool) or tool.key or tool.app]
    if tool.guidance.when_to_use:
        said.append(f"When to use it: {tool.guidance.when_to_use}")
    if tool.guard.human:
        said.append("A human has to approve every call.")
    if tool.deprecated:
        more = f": {tool.deprecated}" if isinstance(tool.deprecated, str) else ""
        said.append(f"Deprecated{more}.")
    return "\n\n".join(said)


def flag_prefix(tools: Iterable[Tool]) -> str:
    """How the framework's flags are written: in full, where a tool has one of the same name."""
    ours = {f"--{name}" for name in ("json", "input", "yes", "dry-run")}
    for tool in tools:
        for param in tool.params:
            if not ours.isdisjoint((*param.flags, *param.negations)):
                return "--tooli-"
    return "--"
