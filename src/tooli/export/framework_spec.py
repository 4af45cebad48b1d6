"""Framework: the parts of an export that differ between agent frameworks.

`usage`, `functions`, `body` and `definition` are templates with these placeholders: `$module`,
`$stem`, `$package`, `$command` and `$command_type` (name and type of the parameter for the
command), `$flags_parameter` and `$flags_argument` (both empty if no tool has flags), and `$rename`
(empty if no parameter has an alias). The function `template_values` of a record adds others.
"""

from __future__ import annotations

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core.protocols import JsonObject
    from tooli.export.export_spec import ExportedTool, ExportSpec

    ToolKeywords = tuple[ExportedTool, JsonObject]


class Framework(Record):
    """The parts of an export that differ between frameworks."""

    target: str  # the value of `--target`
    caller: str  # the caller ID that exported tools report to the app
    subject: str  # ends the first line of the module's docstring
    usage: str  # the example in the module's docstring
    imports: tuple[str, ...]  # import lines of the framework's package
    tool_type: str  # the type of an item of TOOLS
    test_body: str  # the body of `answer(tool, arguments)` in generated tests
    returns: str = ""  # what `make_tool` returns
    summary: str = ""  # the docstring of `make_tool`
    body: str = ""  # the body of `make_tool`
    definition: str = ""  # replaces `make_tool`, for a framework that needs a class
    constructor: str = "make_tool"
    is_async: bool = True
    encodes_json: bool = True
    standard_imports: tuple[str, ...] = ()  # modules of the standard library that the code uses
    constants: str = ""
    parameters: str = ""  # further parameters of `make_tool`
    functions: str = ""  # functions that `make_tool` uses
    reserved_parameters: tuple[str, ...] = ()  # names that the framework uses for its own arguments
    path: str = "${stem}_${suffix}.py"
    test_imports: tuple[str, ...] = ()
    test_id: str = "tool.name"  # the name of a tool, as an expression in generated tests
    # returns the tool, possibly changed, and more keyword arguments of the constructor
    adapt_tool: Callable[[ExportedTool], ToolKeywords] | None = None
    template_values: Callable[[list[ExportedTool]], dict[str, str]] | None = None
    tail: Callable[[ExportSpec, list[ExportedTool]], str] | None = None  # lines below TOOLS
    more_files: Callable[[ExportSpec, list[ExportedTool]], dict[str, str]] | None = None

    @property
    def imported_names(self) -> frozenset[str]:
        """The names that the import lines bind."""
        names = [line.partition(" import ")[2].split(", ") for line in self.imports]
        return frozenset([name for row in names for name in row])


# ------------------------------------------------------------------ aliases of parameters


def with_aliases(entry: ExportedTool, reserved: tuple[str, ...]) -> ExportedTool:
    """Return a tool whose parameters with reserved names have an underscore: `config_`."""
    properties: JsonObject = entry.schema.get("properties", {})
    alias_by_name = {name: _free_name(name, properties) for name in reserved if name in properties}
    if not alias_by_name:
        return entry
    schema = {
        **entry.schema,
        "properties": {alias_by_name.get(key, key): value for key, value in properties.items()},
    }
    required: list[str] = entry.schema.get("required", [])
    if required:
        schema["required"] = [alias_by_name.get(name, name) for name in required]
    aliases = {alias: name for name, alias in alias_by_name.items()}
    return entry.replace(schema=schema, aliases=aliases)


def _free_name(name: str, properties: JsonObject) -> str:
    while name in properties:
        name += "_"
    return name


def alias_values(tools: list[ExportedTool]) -> dict[str, str]:
    """Return the template values for the code that gives parameters their names again."""
    if not any([entry.aliases for entry in tools]):
        return {"aliases_parameter": "", "rename": ""}
    return {
        "aliases_parameter": "\n    aliases: dict[str, str] | None = None,",
        "rename": """\
        names = aliases or {}
        arguments = {names.get(name, name): value for name, value in arguments.items()}
""",
    }
