"""A package for Google's ADK: tools, and an agent in YAML that ADK's own loader takes.

Tools of our own class, and not plain functions: a function's annotations cannot say all that
the schema says, and ADK checks for missing arguments in words of its own.
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
from tooli.export.python_source import docstring
from tooli.export.runner_source import build_runner

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.export.export_spec import ExportedTool, ExportSpec

DEFAULT_MODEL = "gemini-3.5-flash"


def render(spec: ExportSpec) -> dict[str, str]:
    """The package `adk_NAME`."""
    package = f"adk_{spec.module_stem}"
    tools = exported_tools(spec)
    runner = build_runner(spec, tools, is_async=True)
    text = render_module(
        module_docstring(
            spec,
            "as tools for Google's ADK",
            fill_template(_USAGE_TEMPLATE, {"package": package}),
            ENVELOPE_NOTE,
        ),
        standard_imports(runner),
        [
            "from google.adk.tools import BaseTool, ToolContext",
            "from google.genai.types import FunctionDeclaration",
        ],
        runner.app,
        runner.constants,
        [
            *runner.functions,
            fill_template(_TOOL_CLASS_TEMPLATE, _class_template_values(spec, tools)),
        ],
        [
            *[tool_assignment(spec, entry, "AppTool") for entry in tools],
            tools_list(tools, "BaseTool"),
        ],
    )
    about = f"{spec.title} as an agent for Google's ADK: root_agent.yaml, with tools.py."
    return {
        f"{package}/__init__.py": docstring(about) + "\n",
        f"{package}/root_agent.yaml": _agent_yaml(spec, package, tools),
        f"{package}/tools.py": text,
    }


def _class_template_values(spec: ExportSpec, tools: list[ExportedTool]) -> dict[str, str]:
    fill = make_tool_values(spec, tools)
    flags = bool(fill["flags"])
    return {
        **fill,
        "flags": "\n        flags: tuple[str, ...] = ()," if flags else "",
        "kept": "\n        self.flags = flags" if flags else "",
        "given": ", self.flags" if flags else "",
    }


def _agent_yaml(spec: ExportSpec, package: str, tools: list[ExportedTool]) -> str:
    """The agent: what it is for, and its tools."""
    about = _single_line(spec.app_info.description)
    plain = about.replace("{", "(").replace("}", ")")  # ADK would look for a {name} in its state
    instructions = [line for line in (plain, *_INSTRUCTIONS) if line]
    lines = [
        f"# {_single_line(spec.title)} as an agent for Google's ADK. Made by tooli; to make it again:",
        f"#     {_single_line(spec.regenerate_command)}",
        "agent_class: LlmAgent",
        f"name: {spec.module_stem}_agent",
        f"model: {_quote_yaml(spec.model or DEFAULT_MODEL)}",
        f"description: {_quote_yaml(about or spec.app_info.name)}",
        "instruction: |-",
        *[f"  {line}" for line in instructions],
        "tools:",
        *[f"  - name: {package}.tools.{entry.variable}" for entry in tools],
    ]
    return "\n".join(lines) + "\n"


def _single_line(value: str) -> str:
    return " ".join(value.split())


def _quote_yaml(value: str) -> str:
    """A text as YAML takes it on one line: JSON's quotes are YAML's, too."""
    from json import dumps

    plain = value.replace("-", "").replace(".", "").isalnum()
    return value if plain and value[0].isalpha() else dumps(value, ensure_ascii=False)


_INSTRUCTIONS = (
    "Every tool answers with an envelope: ok and result, or ok: false and an error.",
    "Where an error has a suggestion, follow it; where it says ask_human, ask the user.",
)

_USAGE_TEMPLATE = """
    from google.adk.agents import LlmAgent
    from $package.tools import TOOLS

    agent = LlmAgent(name="assistant", model="...", tools=TOOLS)

root_agent.yaml is such an agent: adk run $package
"""

_TOOL_CLASS_TEMPLATE = '''
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
