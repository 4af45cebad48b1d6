"""Run exports in their framework, with a model that is a script, and tell what the model saw.

    python drive.py TARGET FOLDER...

A FOLDER holds an export, and `calls.json`: the calls, each `[tool, arguments]`, that the scripted
model makes in its one turn. Into `seen.json` go `{"shown": {tool: schema}, "told": {tool:
description}, "answers": [[text, outcome]]}`: the outcome as the framework names it, or null.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]
Seen = tuple[dict[str, Any], dict[str, str], list[tuple[str, Any]]]


async def openai(folder: Path, calls: Calls) -> Seen:
    from agents import Agent, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    tools = importlib.import_module("every_thing_openai").TOOLS
    turn = [function_call(name, text, call_id=str(i)) for i, (name, text) in enumerate(calls)]
    model = ScriptedModel([turn, [assistant_message("done")]])
    done = await Runner.run(Agent(name="a", tools=tools, model=model), "go")
    model.assert_complete()
    outputs = {
        item.raw_item["call_id"]: item.output
        for item in done.new_items
        if item.type == "tool_call_output_item"
    }
    shown = {tool.name: tool.params_json_schema for tool in tools}
    told = {tool.name: tool.description for tool in tools}
    return shown, told, [(outputs[str(i)], None) for i in range(len(calls))]


async def langchain(folder: Path, calls: Calls) -> Seen:
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

    tools = importlib.import_module("every_thing_langchain").TOOLS
    turn = [
        {"name": name, "args": text, "id": str(i), "type": "tool_call"}
        for i, (name, text) in enumerate(calls)
    ]
    script = iter([AIMessage("", tool_calls=turn), AIMessage("done")])
    agent = create_agent(Scripted(messages=script), tools)
    start = {"messages": [("user", "go")]}
    if folder.name == "import":
        done = await agent.ainvoke(start)
    else:
        done = await asyncio.to_thread(agent.invoke, start)
    outputs = {m.tool_call_id: m for m in done["messages"] if isinstance(m, ToolMessage)}
    answers: list[tuple[str, Any]] = []
    for i in range(len(calls)):
        message = outputs[str(i)]
        if message.status == "success":
            assert message.artifact == json.loads(message.content).get("result")
        answers.append((message.content, message.status))
    functions = [convert_to_openai_tool(tool)["function"] for tool in tools]
    shown = {function["name"]: function["parameters"] for function in functions}
    return shown, {f["name"]: f["description"] for f in functions}, answers


async def adk(folder: Path, calls: Calls) -> Seen:
    from google.adk.cli.utils.agent_loader import AgentLoader
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    requests: list[Any] = []

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            requests.append(llm_request)
            parts = [types.Part(text="done")]
            if len(requests) == 1:
                parts = [
                    types.Part(function_call=types.FunctionCall(id=str(i), name=name, args=text))
                    for i, (name, text) in enumerate(calls)
                ]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    agent: Any = AgentLoader(str(folder)).load_agent("adk_every_thing")  # root_agent.yaml
    agent.model = Scripted(model="scripted")
    runner = InMemoryRunner(agent=agent, app_name="every_thing")
    session = await runner.session_service.create_session(app_name="every_thing", user_id="u")
    outputs: dict[str, Any] = {}
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        for response in event.get_function_responses():
            outputs[response.id] = response.response
    declared = requests[0].config.tools[0].function_declarations
    answers = [(json.dumps(outputs[str(i)]), None) for i in range(len(calls))]
    shown = {each.name: each.parameters_json_schema for each in declared}
    return shown, {each.name: each.description for each in declared}, answers


async def claude(folder: Path, calls: Calls) -> Seen:
    import mcp

    module = importlib.import_module("every_thing_claude")
    async with mcp.Client(module.server["instance"]) as client:
        listed = (await client.list_tools()).tools
        done = await asyncio.gather(*[client.call_tool(name, text) for name, text in calls])
    answers = [(result.content[0].text, bool(result.is_error)) for result in done]
    shown = {tool.name: tool.input_schema for tool in listed}
    return shown, {tool.name: tool.description for tool in listed}, answers


async def copilot(folder: Path, calls: Calls) -> Seen:
    from copilot import CopilotSession
    from copilot.session_events import ExternalToolRequestedData

    answers: dict[str, Any] = {}
    everything = asyncio.Event()

    class Wire:
        """Copilot's program, as the SDK speaks to it: a session answers the calls it asks for."""

        async def request(self, method: str, params: dict[str, Any], **more: Any) -> Any:
            assert method == "session.tools.handlePendingToolCall"
            answers[params["requestId"]] = params["result"]
            if len(answers) == len(calls):
                everything.set()
            return {"success": True}

    tools = {tool.name: tool for tool in importlib.import_module("every_thing_copilot").TOOLS}
    assert [name for name, tool in tools.items() if tool.overrides_built_in_tool] == ["grep"]
    session = CopilotSession("s", Wire())
    session._register_tools(list(tools.values()))
    for i, (name, text) in enumerate(calls):
        asked = ExternalToolRequestedData(
            request_id=str(i), session_id="s", tool_call_id=str(i), tool_name=name, arguments=text
        )
        session._handle_broadcast_event(SimpleNamespace(data=asked, agent_id=None))
    await asyncio.wait_for(everything.wait(), 120)
    results = [answers[str(i)] for i in range(len(calls))]
    shown = {name: tool.parameters for name, tool in tools.items()}
    told = {name: tool.description for name, tool in tools.items()}
    return shown, told, [(one["textResultForLlm"], one["resultType"]) for one in results]


async def pydantic_ai(folder: Path, calls: Calls) -> Seen:
    from pydantic_ai import Agent, models
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    models.ALLOW_MODEL_REQUESTS = False
    turns: list[Any] = []

    def script(messages: Any, info: Any) -> ModelResponse:
        turns.append((messages, info))
        if len(turns) > 7:
            return ModelResponse(parts=[TextPart("done")])
        if len(turns) > 1:  # a model that does not learn: more tries than it has retries
            return ModelResponse(parts=[ToolCallPart("later", {}, f"again-{len(turns)}")])
        return ModelResponse(
            parts=[ToolCallPart(name, message, str(i)) for i, (name, message) in enumerate(calls)]
        )

    toolset = importlib.import_module("every_thing_pydantic_ai").toolset
    await Agent(FunctionModel(script), toolsets=[toolset]).run("go")
    messages, info = turns[1]
    outputs: dict[str, tuple[str, str]] = {}
    for part in messages[-1].parts:
        if part.part_kind == "tool-return":
            text = part.content if part.outcome != "success" else part.model_response_str()
            outputs[part.tool_call_id] = (text, part.outcome)
    shown = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
    told = {tool.name: tool.description for tool in info.function_tools}
    return shown, told, [outputs[str(i)] for i in range(len(calls))]


DRIVERS = {
    "openai": openai,
    "langchain": langchain,
    "adk": adk,
    "claude": claude,
    "copilot": copilot,
    "pydantic-ai": pydantic_ai,
}


def main(target: str, *folders: str) -> None:
    for place in folders:
        folder = Path(place)
        sys.path.insert(0, place)
        calls = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
        shown, told, answers = asyncio.run(DRIVERS[target](folder, calls))
        seen = {"shown": shown, "told": told, "answers": answers}
        (folder / "seen.json").write_text(json.dumps(seen), encoding="utf-8")
        sys.path[:] = [path for path in sys.path if path != place]
        for name in [name for name in sys.modules if "every_thing" in name.partition(".")[0]]:
            del sys.modules[name]


if __name__ == "__main__":
    main(*sys.argv[1:])
