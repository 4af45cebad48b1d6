"""The agent frameworks that tools can be exported to, one record each.

`module_source.render_framework` turns a record into a module. To support another framework, add
a record to `FRAMEWORKS`. Parts that are not fixed text are functions in the record.
"""

from __future__ import annotations

from json import dumps

from tooli.describe.mcp_tools import mcp_hints
from tooli.export.framework_spec import Framework
from tooli.export.model_frameworks import MODEL_FRAMEWORKS
from tooli.export.python_source import SourceText, call_source, docstring, value_literal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool
    from tooli.export.export_spec import ExportedTool, ExportSpec
    from tooli.export.framework_spec import ToolKeywords


# ------------------------------------------------------------------ OpenAI Agents SDK

# FunctionTool uses the schema unchanged. A schema that the SDK derives from annotations would make
# every parameter required and reject additional properties.
_OPENAI = Framework(
    target="openai",
    caller="openai-agents",
    subject="as tools for the OpenAI Agents SDK",
    usage="""
    from agents import Agent
    from $module import TOOLS

    agent = Agent(name="assistant", tools=TOOLS)
""",
    imports=(
        "from agents import FunctionTool, Tool",
        "from agents.tool_context import ToolContext",
    ),
    tool_type="Tool",
    returns="FunctionTool",
    summary="Create a tool that passes the model's JSON on and returns the envelope as JSON.",
    body="""
    async def invoke(context: ToolContext[Any], text: str) -> str:
        try:
            arguments = dict(json.loads(text or "{}"))
        except (TypeError, ValueError) as error:
            envelope = failure("E1008", f"Not a JSON object: {error}")
        else:
            envelope = await call($command, arguments, timeout$flags_argument)
        return json.dumps(envelope, ensure_ascii=False)

    return FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,  # strict mode would make optional parameters required
    )
""",
    test_body="""
    return json.loads(asyncio.run(tool.on_invoke_tool(None, json.dumps(arguments))))
""",
)

# ------------------------------------------------------------------ LangChain

# StructuredTool uses the schema unchanged, so LangChain does not convert the arguments. The app
# validates them, and its error messages suggest corrections.
_LANGCHAIN = Framework(
    target="langchain",
    caller="langchain",
    subject="as tools for LangChain and LangGraph",
    usage="""
    from langchain.agents import create_agent
    from $module import TOOLS

    agent = create_agent(model, tools=TOOLS)
""",
    imports=("from langchain_core.tools import BaseTool, StructuredTool, ToolException",),
    tool_type="BaseTool",
    is_async=False,
    returns="StructuredTool",
    summary="Create a tool whose message is the envelope and whose artifact is the result.",
    reserved_parameters=("callbacks", "config", "run_manager", "self"),
    body="""
    def invoke(**arguments: Any) -> tuple[str, Any]:
$rename        envelope = call($command, arguments, timeout$flags_argument)
        text = json.dumps(envelope, ensure_ascii=False)
        if not envelope["ok"]:
            raise ToolException(text)  # the only exception that LangChain shows to the model
        return text, envelope.get("result")

    return StructuredTool.from_function(
        func=invoke,
        name=name,
        description=description,
        args_schema=schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
""",
    test_body="""
    call = {"type": "tool_call", "name": tool.name, "id": "1", "args": arguments}
    return json.loads(tool.invoke(call).content)
""",
)

# ------------------------------------------------------------------ Google ADK

DEFAULT_MODEL = "gemini-3.5-flash"

_ADK_INSTRUCTIONS = (
    "Every tool returns an envelope: ok and result, or ok: false and an error.",
    "If an error has a suggestion, follow it. If its action is ask_human, ask the user.",
)


def _adk_values(tools: list[ExportedTool]) -> dict[str, str]:
    flags = any([entry.flags for entry in tools])
    return {
        "flags_parameter": "\n        flags: tuple[str, ...] = ()," if flags else "",
        "flags_attribute": "\n        self.flags = flags" if flags else "",
        "flags_argument": ", self.flags" if flags else "",
    }


def _adk_files(spec: ExportSpec, tools: list[ExportedTool]) -> dict[str, str]:
    """Return the other files of the package: __init__.py, and the agent as YAML."""
    package = f"adk_{spec.module_stem}"
    summary = f"{spec.title} as an agent for Google ADK: root_agent.yaml and tools.py."
    return {
        f"{package}/__init__.py": docstring(summary) + "\n",
        f"{package}/root_agent.yaml": _agent_yaml(spec, package, tools),
    }


def _agent_yaml(spec: ExportSpec, package: str, tools: list[ExportedTool]) -> str:
    description = _single_line(spec.app_info.description)
    # ADK replaces {name} in an instruction by a value of its session state.
    escaped = description.replace("{", "(").replace("}", ")")
    instructions = [line for line in (escaped, *_ADK_INSTRUCTIONS) if line]
    lines = [
        f"# {_single_line(spec.title)} as an agent for Google ADK. "
        "Generated by tooli. To regenerate it:",
        f"#     {_single_line(spec.regenerate_command)}",
        "agent_class: LlmAgent",
        f"name: {spec.module_stem}_agent",
        f"model: {_quote_yaml(spec.model or DEFAULT_MODEL)}",
        f"description: {_quote_yaml(description or spec.app_info.name)}",
        "instruction: |-",
        *[f"  {line}" for line in instructions],
        "tools:",
        *[f"  - name: {package}.tools.{entry.variable}" for entry in tools],
    ]
    return "\n".join(lines) + "\n"


def _single_line(value: str) -> str:
    return " ".join(value.split())


def _quote_yaml(value: str) -> str:
    """Return a YAML scalar on one line. A JSON string is a valid YAML string."""
    plain = value.replace("-", "").replace(".", "").isalnum()
    return value if plain and value[0].isalpha() else dumps(value, ensure_ascii=False)


# This is a class, because the annotations of a function cannot express the whole schema, and ADK
# reports missing arguments of a function in its own format.
_ADK = Framework(
    target="adk",
    caller="google-adk",
    subject="as tools for Google ADK",
    usage="""
    from google.adk.agents import LlmAgent
    from $package.tools import TOOLS

    agent = LlmAgent(name="assistant", model="...", tools=TOOLS)

root_agent.yaml defines such an agent. Start it with: adk run $package
""",
    imports=(
        "from google.adk.tools import BaseTool, ToolContext",
        "from google.genai.types import FunctionDeclaration",
    ),
    tool_type="BaseTool",
    constructor="AppTool",
    encodes_json=False,
    path="adk_$stem/tools.py",
    definition='''
class AppTool(BaseTool):
    """A tool that passes the model's arguments to the app and returns the envelope."""

    def __init__(
        self,
        name: str,
        $command: $command_type,
        *,
        description: str,
        schema: dict[str, Any],
        timeout: float = TIMEOUT,$flags_parameter
    ) -> None:
        super().__init__(name=name, description=description)
        self.$command = $command
        self.schema = schema
        self.timeout = timeout$flags_attribute

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self.schema,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return await call(self.$command, args, self.timeout$flags_argument)
''',
    test_imports=("from google.adk.agents.config_agent_utils import from_config",),
    test_body="""
    return asyncio.run(tool.run_async(args=arguments, tool_context=None))
""",
    template_values=_adk_values,
    more_files=_adk_files,
)

# ------------------------------------------------------------------ Claude Agent SDK


def _adapt_claude_tool(entry: ExportedTool) -> ToolKeywords:
    return entry, {"hints": _mcp_hints(entry.tool)}


def _mcp_hints(tool: Tool) -> SourceText:
    """Return the MCP annotations of a tool as source code."""
    hints = mcp_hints(tool)
    return SourceText(call_source("ToolAnnotations", depth=1, columns_before=7, **hints))


def _claude_tail(spec: ExportSpec, tools: list[ExportedTool]) -> str:
    prefix = f"mcp__{spec.module_stem}__"
    read_only = [f"{prefix}{entry.name}" for entry in tools if entry.tool.effects.read_only]
    version = spec.app_info.version or "0"
    server = call_source(
        "create_sdk_mcp_server", spec.module_stem, version, SourceText("TOOLS"), columns_before=9
    )
    return f"READ_ONLY = {value_literal(read_only, columns_before=12)}\nserver = {server}"


# The SDK validates arguments against the schema before it calls a tool, and reports violations
# itself.
_CLAUDE = Framework(
    target="claude",
    caller="claude-agent-sdk",
    subject="as tools for the Claude Agent SDK",
    usage="""
    from claude_agent_sdk import ClaudeAgentOptions
    from $module import READ_ONLY, server

    options = ClaudeAgentOptions(mcp_servers={"$stem": server}, allowed_tools=READ_ONLY)
""",
    imports=(
        "from claude_agent_sdk import SdkMcpTool, ToolAnnotations, create_sdk_mcp_server, tool",
    ),
    tool_type="SdkMcpTool[Any]",
    returns="SdkMcpTool[Any]",
    summary="Create a tool whose content is the envelope as JSON.",
    body="""
    @tool(name, description, schema, hints)
    async def invoke(arguments: dict[str, Any]) -> dict[str, Any]:
        envelope = await call($command, arguments, timeout$flags_argument)
        text = json.dumps(envelope, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}], "is_error": not envelope["ok"]}

    return invoke
""",
    test_body="""
    return json.loads(asyncio.run(tool.handler(arguments))["content"][0]["text"])
""",
    adapt_tool=_adapt_claude_tool,
    template_values=lambda tools: {"required_parameters": "\n    hints: ToolAnnotations,"},
    tail=_claude_tail,
)

# ------------------------------------------------------------------ GitHub Copilot SDK

BUILT_IN_TOOLS = frozenset(
    (
        *("apply_patch", "ask_user", "bash", "context_board", "create", "edit", "exit_plan_mode"),
        *("fetch_copilot_cli_documentation", "glob", "grep", "list_agents", "list_bash"),
        *("list_powershell", "powershell", "read_agent", "read_bash", "read_powershell"),
        *("report_intent", "rg", "search_code_subagent", "send_inbox", "show_file", "skill"),
        *("sql", "stop_bash", "stop_powershell", "store_memory", "str_replace_editor", "task"),
        *("task_complete", "update_todo", "view", "vote_memory", "web_fetch", "web_search"),
        *("write_agent", "write_bash", "write_powershell"),
    )
)
"""Copilot's own tools. A tool of the same name must declare that it overrides the built-in one."""


def _adapt_copilot_tool(entry: ExportedTool) -> ToolKeywords:
    return entry, {"overrides": True} if entry.name in BUILT_IN_TOOLS else {}


def _copilot_values(tools: list[ExportedTool]) -> dict[str, str]:
    clashes = any([entry.name in BUILT_IN_TOOLS for entry in tools])
    return {
        "overrides_parameter": "\n    overrides: bool = False," if clashes else "",
        "overrides_argument": "\n        overrides_built_in_tool=overrides," if clashes else "",
    }


_COPILOT = Framework(
    target="copilot",
    caller="copilot-sdk",
    subject="as tools for the GitHub Copilot SDK",
    usage="""
    from copilot import CopilotClient
    from $module import TOOLS

    async with CopilotClient() as client:
        session = await client.create_session(tools=TOOLS)
""",
    imports=("from copilot import Tool, ToolInvocation, ToolResult",),
    tool_type="Tool",
    returns="Tool",
    summary="Create a tool whose text result is the envelope.",
    parameters="$overrides_parameter",
    body="""
    async def invoke(invocation: ToolInvocation) -> ToolResult:
        arguments = dict(invocation.arguments or {})
        envelope = await call($command, arguments, timeout$flags_argument)
        text = json.dumps(envelope, ensure_ascii=False)
        if envelope["ok"]:
            return ToolResult(text_result_for_llm=text)
        message = envelope["error"]["message"]
        return ToolResult(text_result_for_llm=text, result_type="failure", error=message)

    return Tool(
        name=name,
        description=description,
        handler=invoke,
        parameters=schema,$overrides_argument
    )
""",
    test_imports=("from copilot import ToolInvocation",),
    test_body="""
    result = asyncio.run(tool.handler(ToolInvocation(arguments=arguments)))
    return json.loads(result.text_result_for_llm)
""",
    adapt_tool=_adapt_copilot_tool,
    template_values=_copilot_values,
)

# ------------------------------------------------------------------ Pydantic AI


def _pydantic_ai_tail(spec: ExportSpec, tools: list[ExportedTool]) -> str:
    toolset = call_source(
        "FunctionToolset",
        SourceText("TOOLS"),
        columns_before=27,
        id=spec.module_stem,
        max_retries=SourceText("RETRIES"),
    )
    return f"toolset = {toolset}"


# Tool.from_schema does not convert the arguments. An error that the model can correct is raised as
# ModelRetry. Any other error is raised as ToolFailed, which does not count as a retry.
_PYDANTIC_AI = Framework(
    target="pydantic-ai",
    caller="pydantic-ai",
    subject="as a toolset for Pydantic AI",
    usage="""
    from pydantic_ai import Agent
    from $module import toolset

    agent = Agent(model, toolsets=[toolset])
""",
    imports=("from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolFailed",),
    tool_type="Tool",
    constants="RETRIES = 3  # how often in a row a model may correct a call",
    returns="Tool",
    summary="Create a tool that returns the envelope, or raises it as ModelRetry or ToolFailed.",
    body="""
    async def invoke(context: RunContext[Any], /, **arguments: Any) -> dict[str, Any]:
        envelope = await call($command, arguments, timeout$flags_argument)
        if envelope["ok"]:
            return envelope
        error = envelope["error"]
        text = json.dumps(envelope, ensure_ascii=False)
        needs_human = error.get("suggestion", {}).get("action") == "ask_human"
        if error["is_retryable"] and not needs_human and not context.last_attempt:
            raise ModelRetry(text)
        raise ToolFailed(text)  # a ModelRetry on the last attempt would end the run

    return Tool.from_schema(invoke, name, description, schema, takes_ctx=True)
""",
    test_imports=("from pydantic_ai import ModelRetry, ToolFailed",),
    test_body="""
    try:
        return asyncio.run(tool.function(SimpleNamespace(last_attempt=False), **arguments))
    except (ModelRetry, ToolFailed) as failure:
        return json.loads(failure.message)
""",
    tail=_pydantic_ai_tail,
)

FRAMEWORKS = {
    framework.target: framework
    for framework in (
        *(_OPENAI, _LANGCHAIN, _ADK, _CLAUDE, _COPILOT, _PYDANTIC_AI),
        *MODEL_FRAMEWORKS,
    )
}
