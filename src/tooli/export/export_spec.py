"""Order: what is to be exported, and how; Entry: one tool of it, as generated code names it."""

from __future__ import annotations

from tooli.core.record import Record
from tooli.describe.mcp_tools import arguments_schema
from tooli.describe.schema_formats import description_text, tools_by_safe_name
from tooli.export.python_source import identifier
from tooli.schema.json_schema import input_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.core.tool import Tool
    from tooli.describe.app_info import AppInfo

DEFAULT_TIMEOUT = 120.0
"""Seconds that a tool may take, where it does not say so itself."""

CONFIRMATION_FLAGS = ("yes", "dry_run")
"""What the model may say about a destructive tool, beside the tool's own arguments."""

RESERVED_NAMES = frozenset(
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


class ExportSpec(Record):
    """An app, and how its tools are to be reached from a framework's code."""

    app_info: AppInfo
    target: str
    mode: str  # "subprocess" | "import"
    command: tuple[str, ...]  # what starts the program
    app_location: tuple[str, str]  # the module that has the app, and its name there
    caller: str  # what the framework is called where callers are told apart
    regenerate_command: str  # the command that makes the same files
    model: str | None = None

    @property
    def is_in_process(self) -> bool:
        """Whether the tools run in the framework's own process."""
        return self.mode == "import"

    @property
    def title(self) -> str:
        """The app and its version."""
        return " ".join(f"{self.app_info.name} {self.app_info.version or ''}".split())

    @property
    def module_stem(self) -> str:
        """The app's name, as modules have it."""
        words = identifier(self.app_info.name.lower()).split("_")
        return identifier("_".join([*filter(None, words)]) or "app")


class ExportedTool(Record):
    """One tool: what the model sees, and what is run for it."""

    tool: Tool
    name: str  # for the model
    variable: str  # in the generated module
    description: str
    schema: dict[str, Any]
    flags: tuple[str, ...]  # of CONFIRMING, those that the model may say beside the arguments
    timeout: float | None


def exported_tools(spec: ExportSpec) -> list[ExportedTool]:
    """The tools of an app, in its order."""
    found: list[ExportedTool] = []
    used = {*RESERVED_NAMES}
    for name, tool in tools_by_safe_name(spec.app_info.tools).items():
        variable = identifier(name, used)
        used.add(variable)
        own, schema = input_schema(tool), arguments_schema(tool)
        added = schema.get("properties", {}).keys() - own.get("properties", {}).keys()
        flags = tuple([flag for flag in CONFIRMATION_FLAGS if flag in added])
        if "apply" in added:  # a generated program has no way to say the token of a plan
            fields = {k: v for k, v in schema["properties"].items() if k != "apply"}
            schema = {**schema, "properties": fields}
        about = tool_description(tool)
        found.append(ExportedTool(tool, name, variable, about, schema, flags, tool.limits.timeout))
    return found


def tool_description(tool: Tool) -> str:
    """What a model is told about a tool: what it does, when to use it, what stands in its way."""
    paragraphs = [description_text(tool) or tool.key or tool.app]
    if tool.guidance.when_to_use:
        paragraphs.append(f"When to use it: {tool.guidance.when_to_use}")
    if tool.guard.needs_human:
        paragraphs.append("A human has to approve every call.")
    if tool.deprecated:
        more = f": {tool.deprecated}" if isinstance(tool.deprecated, str) else ""
        paragraphs.append(f"Deprecated{more}.")
    return "\n\n".join(paragraphs)


def flag_prefix(tools: Iterable[Tool]) -> str:
    """How the framework's flags are written: in full, where a tool has one of the same name."""
    framework_flags = {f"--{name}" for name in ("json", "input", "yes", "dry-run")}
    for tool in tools:
        for param in tool.params:
            if not framework_flags.isdisjoint((*param.flags, *param.negations)):
                return "--tooli-"
    return "--"
