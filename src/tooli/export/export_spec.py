"""ExportSpec, the description of an export, and ExportedTool, one tool in it."""

from __future__ import annotations

from shlex import join, split

from tooli.core import Record
from tooli.describe.mcp_tools import arguments_schema, description_text, tools_by_safe_name
from tooli.errors import InputError, Suggestion
from tooli.export.python_source import identifier
from tooli.schema.json_schema import input_schema

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.describe.sections import AppInfo

DEFAULT_TIMEOUT = 120.0
"""The timeout in seconds of a tool that does not declare one."""

CONFIRMATION_FLAGS = ("yes", "dry_run")
"""Options of a destructive tool that a model may pass with its arguments: true or false."""

PAGE_OPTIONS = ("limit", "cursor")
"""Options of a paginated tool that a model may pass with its arguments."""

RESERVED_NAMES = frozenset(
    (
        *("CALLER", "COMMAND", "FIXES", "READ_ONLY", "RETRIES", "TIMEOUT", "TOOLS"),
        *("Any", "AppTool", "CommandError", "Item", "Literal", "Page", "Path", "Sequence"),
        *("TypeVar", "TypedDict", "make_page", "run_page"),
        *("annotations", "app", "arguments_model", "asyncio", "bool", "call", "classmethod"),
        *("copy", "dict", "export", "failure", "float", "never_cache", "set"),
        *("getattr", "hasattr", "int", "isinstance", "json", "list", "make_tool", "os"),
        *("parse_envelope", "queue", "run", "server", "signal", "stop", "str", "subprocess"),
        *("super", "threading", "tool", "toolset", "tuple", "without_none"),
    )
)
"""Names that generated modules use themselves. A tool's variable must have another name."""


class ExportSpec(Record):
    """An app to export, and how the generated code calls its tools."""

    app_info: AppInfo
    target: str  # a framework, or "python"
    mode: str = "subprocess"  # or "import", to call the app in the framework's process
    command: str | None = None  # the command line that starts the program. Default: its name
    app: str | None = None  # the location of the app, "package.module:name", for mode "import"
    model: str | None = None  # the model of an exported agent
    with_tests: bool = False

    @property
    def program(self) -> tuple[str, ...]:
        """The argv that starts the program."""
        return tuple(split(self.command)) if self.command else (self.app_info.name,)

    @property
    def app_location(self) -> tuple[str, str]:
        """The module of the app and the app's name in it."""
        module, _, name = (self.app or self.app_info.import_path or "").partition(":")
        if name.isidentifier() and all([part.isidentifier() for part in module.split(".")]):
            return module, name
        raise InputError(
            f"{self.app!r} is not the location of an app: expected 'package.module:name'."
            if self.app
            else "The module that defines the app is unknown.",
            field="app",
            suggestion=Suggestion("fix", "Pass the location: --app package.module:name"),
        )

    @property
    def regenerate_command(self) -> str:
        """The command line that writes the same files."""
        options = {"--command": self.command, "--app": self.app, "--model": self.model}
        argv = [self.app_info.name, "export", "--target", self.target, "--mode", self.mode]
        argv += [text for flag, value in options.items() if value for text in (flag, value)]
        return join([*argv, "--with-tests"] if self.with_tests else argv)

    @property
    def is_in_process(self) -> bool:
        """True if the tools run in the process of the agent framework."""
        return self.mode == "import"

    @property
    def title(self) -> str:
        """The app and its version."""
        return " ".join(f"{self.app_info.name} {self.app_info.version or ''}".split())

    @property
    def module_stem(self) -> str:
        """The app's name as a Python identifier."""
        words = identifier(self.app_info.name.lower()).split("_")
        return identifier("_".join([*filter(None, words)]) or "app")


class ExportedTool(Record):
    """One exported tool, with the name, description and schema that the model sees."""

    tool: Tool
    name: str  # the name that the model sees
    variable: str  # its variable in the generated module
    description: str
    schema: JsonObject
    flags: tuple[str, ...]  # the CONFIRMATION_FLAGS and PAGE_OPTIONS that the model may pass
    timeout: float | None
    aliases: JsonObject = {}  # noqa: RUF012  names of parameters by the alias that the model sees


def exported_tools(spec: ExportSpec, imported_names: Iterable[str] = ()) -> list[ExportedTool]:
    """Return the tools of the app, in the app's order. No variable has an imported name."""
    found: list[ExportedTool] = []
    used = {*RESERVED_NAMES, *imported_names}
    for name, tool in tools_by_safe_name(spec.app_info.tools).items():
        variable = identifier(name, used)
        used.add(variable)
        own = input_schema(tool)
        schema = arguments_schema(tool, is_portable=spec.target != "python")
        added = schema.get("properties", {}).keys() - own.get("properties", {}).keys()
        flags = tuple([flag for flag in (*CONFIRMATION_FLAGS, *PAGE_OPTIONS) if flag in added])
        if "apply" in added:  # generated code has no way to pass a plan token
            fields = {k: v for k, v in schema["properties"].items() if k != "apply"}
            schema = {**schema, "properties": fields}
        about = tool_description(tool)
        found.append(ExportedTool(tool, name, variable, about, schema, flags, tool.limits.timeout))
    return found


def tool_description(tool: Tool) -> str:
    """Return the description for the model: purpose, when to use it, restrictions."""
    paragraphs = [description_text(tool) or tool.key or tool.app]
    if tool.guidance.when_to_use:
        paragraphs.append(f"When to use it: {tool.guidance.when_to_use}")
    if tool.guard.needs_human:
        paragraphs.append("A human must approve every call.")
    if tool.deprecated:
        more = f": {tool.deprecated}" if isinstance(tool.deprecated, str) else ""
        paragraphs.append(f"Deprecated{more}.")
    return "\n\n".join(paragraphs)


def flag_prefix(tools: Iterable[Tool]) -> str:
    """Return the prefix of tooli's own flags: `--tooli-` if a tool has a flag of the same name."""
    names = ("json", "input", "yes", "dry-run", "limit", "cursor", "max-tokens")
    framework_flags = {f"--{name}" for name in names}
    for tool in tools:
        for param in tool.params:
            if not framework_flags.isdisjoint((*param.flags, *param.negations)):
                return "--tooli-"
    return "--"
