"""The agent frameworks that take the schema of a tool as a pydantic model.

The generated model has the exact schema and accepts any arguments: the app validates them, and its
error messages suggest corrections.
"""

from __future__ import annotations

from tooli.export.framework_spec import Framework

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.export.export_spec import ExportedTool
    from tooli.export.framework_spec import ToolKeywords

_ARGUMENTS_MODEL_CODE = '''
def arguments_model(schema: dict[str, Any]) -> type[BaseModel]:
    """Create a model that has the schema and accepts any arguments: the app validates them."""

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return copy.deepcopy(schema)

    return Arguments
'''

_PYDANTIC_IMPORT = "from pydantic import BaseModel, ConfigDict"

# ------------------------------------------------------------------ CrewAI


def _adapt_crewai_tool(entry: ExportedTool) -> ToolKeywords:
    """Let optional parameters be null, because CrewAI makes every parameter required."""
    required = entry.schema.get("required", ())
    properties: JsonObject = {
        name: part if name in required else _nullable(part)
        for name, part in entry.schema.get("properties", {}).items()
    }
    return entry.replace(schema={**entry.schema, "properties": properties}), {}


def _nullable(schema: JsonObject) -> JsonObject:
    """Return a schema that also accepts null. Description and default stay at the top."""
    inner = {k: v for k, v in schema.items() if k not in ("description", "default")}
    if not inner or {"type": "null"} in inner.get("anyOf", ()):
        return schema
    rest = {k: v for k, v in schema.items() if k not in inner}
    return {"anyOf": [inner, {"type": "null"}], **rest}


def _crewai_values(tools: list[ExportedTool]) -> dict[str, str]:
    flags = any([entry.flags for entry in tools])
    aliases = any([entry.aliases for entry in tools])
    return {
        "flags_argument": ", self.flags" if flags else "",
        "flags_field": "\n    flags: tuple[str, ...]" if flags else "",
        "flags_keyword": "\n        flags=flags," if flags else "",
        "aliases_field": "\n    aliases: dict[str, str]" if aliases else "",
        "aliases_keyword": "\n        aliases=aliases or {}," if aliases else "",
        "rename": """\
        names = self.aliases
        arguments = {names.get(name, name): value for name, value in arguments.items()}
"""
        if aliases
        else "",
    }


# CrewAI marks every parameter as required and sends `"strict": true`, so a model sends null for a
# parameter that it does not want to give. CrewAI also reuses the result of an earlier call with the
# same arguments, unless `cache_function` forbids it.
_CREWAI = Framework(
    target="crewai",
    caller="crewai",
    subject="as tools for CrewAI",
    usage="""
    from crewai import Agent
    from $module import TOOLS

    agent = Agent(role="...", goal="...", backstory="...", tools=TOOLS)
""",
    imports=("from crewai.tools import BaseTool, ToolFailure", _PYDANTIC_IMPORT),
    standard_imports=("asyncio", "copy"),
    tool_type="BaseTool",
    is_async=False,
    returns="AppTool",
    summary="Create a tool with the schema.",
    functions=_ARGUMENTS_MODEL_CODE
    + '''

def never_cache(arguments: Any = None, result: Any = None) -> bool:
    """Make CrewAI run every call, instead of repeating the result of an equal one."""
    return False


class AppTool(BaseTool):
    """A tool that passes the model's arguments to the app and returns the envelope as JSON."""

    $command: $command_type
    timeout: float
    required: list[str]$flags_field$aliases_field

    def _run(self, /, **arguments: Any) -> str | ToolFailure:
        # A model sends null for an optional parameter that it does not want to give.
        optional = [name for name, value in arguments.items() if value is None]
        for name in set(optional).difference(self.required):
            del arguments[name]
$rename        envelope = call(self.$command, arguments, self.timeout$flags_argument)
        text = json.dumps(envelope, ensure_ascii=False)
        if envelope["ok"]:
            return text
        return ToolFailure(message=text, retryable=envelope["error"]["is_retryable"])

    async def _arun(self, /, **arguments: Any) -> str | ToolFailure:
        return await asyncio.to_thread(self._run, **arguments)
''',
    body="""
    return AppTool(
        name=name,
        $command=$command,
        description=description,
        args_schema=arguments_model(schema),
        timeout=timeout,
        required=schema.get("required", []),$flags_keyword$aliases_keyword
        cache_function=never_cache,
    )
""",
    test_imports=("from crewai.tools import ToolFailure",),
    test_body="""
    result = tool.run(**arguments)
    return json.loads(result.message if isinstance(result, ToolFailure) else result)
""",
    reserved_parameters=("self",),
    adapt_tool=_adapt_crewai_tool,
    template_values=_crewai_values,
)

# ------------------------------------------------------------------ LlamaIndex

# FunctionTool calls `callback` with the result of the function. A ToolOutput that it returns
# replaces the one that FunctionTool builds, which is never an error.
_LLAMAINDEX = Framework(
    target="llamaindex",
    caller="llamaindex",
    subject="as tools for LlamaIndex",
    usage="""
    from llama_index.core.agent.workflow import FunctionAgent
    from $module import TOOLS

    agent = FunctionAgent(tools=TOOLS, llm=llm)
""",
    imports=(
        "from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput",
        _PYDANTIC_IMPORT,
    ),
    standard_imports=("copy",),
    tool_type="FunctionTool",
    returns="FunctionTool",
    summary="Create a tool whose content is the envelope as JSON and whose raw output is the dict.",
    functions=_ARGUMENTS_MODEL_CODE,
    body="""
    async def invoke(**arguments: Any) -> ToolOutput:
$rename        envelope = await call($command, arguments, timeout$flags_argument)
        return ToolOutput(
            tool_name=name,
            content=json.dumps(envelope, ensure_ascii=False),
            raw_input=arguments,
            raw_output=envelope,
            is_error=not envelope["ok"],
        )

    return FunctionTool(
        async_fn=invoke,
        metadata=ToolMetadata(description, name, arguments_model(schema)),
        callback=lambda output: output,  # keeps is_error
    )
""",
    test_body="""
    return json.loads(tool.call(**arguments).content)
""",
    test_id="tool.metadata.name",
    reserved_parameters=("self",),
)

# ------------------------------------------------------------------ Microsoft Agent Framework

# With a model, the framework does not check the arguments itself: its own check of a JSON Schema
# reports "Argument parsing failed" without the reason.
_AGENT_FRAMEWORK = Framework(
    target="agent-framework",
    caller="agent-framework",
    subject="as tools for Microsoft Agent Framework",
    usage="""
    from agent_framework import Agent
    from $module import TOOLS

    agent = Agent(client, tools=TOOLS)
""",
    imports=("from agent_framework import FunctionTool", _PYDANTIC_IMPORT),
    standard_imports=("copy",),
    tool_type="FunctionTool",
    returns="FunctionTool",
    summary="Create a tool that returns the envelope as JSON.",
    functions=_ARGUMENTS_MODEL_CODE,
    body="""
    async def invoke(**arguments: Any) -> str:
$rename        envelope = await call($command, arguments, timeout$flags_argument)
        return json.dumps(envelope, ensure_ascii=False)

    return FunctionTool(
        name=name,
        description=description,
        func=invoke,
        input_model=arguments_model(schema),
    )
""",
    test_body="""
    (content,) = asyncio.run(tool.invoke(arguments=arguments))
    return json.loads(content.text)
""",
    reserved_parameters=("self",),
)

MODEL_FRAMEWORKS = (_CREWAI, _LLAMAINDEX, _AGENT_FRAMEWORK)
