"""Run exports in their framework with a scripted model, and record what the model receives.

    python run_exports.py TARGET FOLDER...

Each FOLDER contains an export and `calls.json`, a list of `[tool, arguments]`. The scripted model
makes these calls in one turn. The result is written to `received.json`: `{"schemas": {tool:
schema}, "descriptions": {tool: description}, "answers": [[text, outcome]]}`. The outcome is the
status that the framework reports, or null.
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
Received = tuple[dict[str, Any], dict[str, str], list[tuple[str, Any]]]


async def openai(folder: Path, calls: Calls) -> Received:
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
    schemas = {tool.name: tool.params_json_schema for tool in tools}
    descriptions = {tool.name: tool.description for tool in tools}
    return schemas, descriptions, [(outputs[str(i)], None) for i in range(len(calls))]


async def langchain(folder: Path, calls: Calls) -> Received:
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool

    class ScriptedChatModel(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

    tools = importlib.import_module("every_thing_langchain").TOOLS
    turn = [
        {"name": name, "args": text, "id": str(i), "type": "tool_call"}
        for i, (name, text) in enumerate(calls)
    ]
    script = iter([AIMessage("", tool_calls=turn), AIMessage("done")])
    agent = create_agent(ScriptedChatModel(messages=script), tools)
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
    schemas = {function["name"]: function["parameters"] for function in functions}
    return schemas, {f["name"]: f["description"] for f in functions}, answers


async def adk(folder: Path, calls: Calls) -> Received:
    from google.adk.cli.utils.agent_loader import AgentLoader
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    requests: list[Any] = []

    class ScriptedChatModel(BaseLlm):
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
    agent.model = ScriptedChatModel(model="scripted")
    runner = InMemoryRunner(agent=agent, app_name="every_thing")
    session = await runner.session_service.create_session(app_name="every_thing", user_id="u")
    outputs: dict[str, Any] = {}
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        for response in event.get_function_responses():
            outputs[response.id] = response.response
    declared = requests[0].config.tools[0].function_declarations
    answers = [(json.dumps(outputs[str(i)]), None) for i in range(len(calls))]
    schemas = {each.name: each.parameters_json_schema for each in declared}
    return schemas, {each.name: each.description for each in declared}, answers


async def claude(folder: Path, calls: Calls) -> Received:
    import mcp

    module = importlib.import_module("every_thing_claude")
    async with mcp.Client(module.server["instance"]) as client:
        listed = (await client.list_tools()).tools
        done = await asyncio.gather(*[client.call_tool(name, text) for name, text in calls])
    answers = [(result.content[0].text, bool(result.is_error)) for result in done]
    schemas = {tool.name: tool.input_schema for tool in listed}
    return schemas, {tool.name: tool.description for tool in listed}, answers


async def copilot(folder: Path, calls: Calls) -> Received:
    from copilot import CopilotSession
    from copilot.session_events import ExternalToolRequestedData

    answers: dict[str, Any] = {}
    all_answered = asyncio.Event()

    class Connection:
        """Replaces the connection of the SDK to Copilot; it receives the answers of the session."""

        async def request(self, method: str, params: dict[str, Any], **more: Any) -> Any:
            assert method == "session.tools.handlePendingToolCall"
            answers[params["requestId"]] = params["result"]
            if len(answers) == len(calls):
                all_answered.set()
            return {"success": True}

    tools = {tool.name: tool for tool in importlib.import_module("every_thing_copilot").TOOLS}
    assert [name for name, tool in tools.items() if tool.overrides_built_in_tool] == ["grep"]
    session = CopilotSession("s", Connection())
    session._register_tools(list(tools.values()))
    for i, (name, text) in enumerate(calls):
        asked = ExternalToolRequestedData(
            request_id=str(i), session_id="s", tool_call_id=str(i), tool_name=name, arguments=text
        )
        session._handle_broadcast_event(SimpleNamespace(data=asked, agent_id=None))
    await asyncio.wait_for(all_answered.wait(), 120)
    results = [answers[str(i)] for i in range(len(calls))]
    schemas = {name: tool.parameters for name, tool in tools.items()}
    descriptions = {name: tool.description for name, tool in tools.items()}
    return schemas, descriptions, [(one["textResultForLlm"], one["resultType"]) for one in results]


async def pydantic_ai(folder: Path, calls: Calls) -> Received:
    from pydantic_ai import Agent, models
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    models.ALLOW_MODEL_REQUESTS = False
    turns: list[Any] = []

    def script(messages: Any, info: Any) -> ModelResponse:
        turns.append((messages, info))
        if len(turns) > 7:
            return ModelResponse(parts=[TextPart("done")])
        if len(turns) > 1:  # repeat an invalid call more often than the retry limit
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
    schemas = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
    descriptions = {tool.name: tool.description for tool in info.function_tools}
    return schemas, descriptions, [outputs[str(i)] for i in range(len(calls))]


async def crewai(folder: Path, calls: Calls) -> Received:
    from crewai import Agent, BaseLLM
    from crewai.events import crewai_event_bus
    from crewai.tools import ToolFailure

    requests: list[Any] = []

    class ScriptedModel(BaseLLM):
        def call(self, messages: Any, tools: Any = None, *args: Any, **more: Any) -> Any:
            requests.append((messages, tools))
            if len(requests) > 1:
                return "done"
            return [
                {
                    "id": str(i),
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(message)},
                }
                for i, (name, message) in enumerate(calls)
            ]

        async def acall(self, messages: Any, tools: Any = None, *args: Any, **more: Any) -> Any:
            return self.call(messages, tools)

        def supports_function_calling(self) -> bool:
            return True

    tools = importlib.import_module("every_thing_crewai").TOOLS
    agent = Agent(
        role="r", goal="g", backstory="b", llm=ScriptedModel(model="scripted"), tools=tools
    )
    if folder.name == "import":
        await agent.kickoff_async("go")
    else:
        await asyncio.to_thread(agent.kickoff, "go")
    crewai_event_bus.shutdown()
    outputs = {m["tool_call_id"]: m["content"] for m in requests[1][0] if m["role"] == "tool"}
    by_name = {tool.name: tool for tool in tools}
    name, text = calls[-1]
    direct = await by_name[name].arun(**text)  # the framework itself calls run
    assert json.loads(direct.message if isinstance(direct, ToolFailure) else direct)["ok"] is True
    functions = [tool["function"] for tool in requests[0][1]]
    schemas = {function["name"]: function["parameters"] for function in functions}
    descriptions = {function["name"]: function["description"] for function in functions}
    return schemas, descriptions, [(outputs[str(i)], None) for i in range(len(calls))]


async def llamaindex(folder: Path, calls: Calls) -> Received:
    from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
    from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
    from llama_index.core.llms import MockFunctionCallingLLM

    turns: list[Any] = []

    def script(messages: Any, **more: Any) -> ChatMessage:
        turns.append((messages, more))
        if len(turns) > 1:
            return ChatMessage(role="assistant", content="done")
        blocks = [
            ToolCallBlock(tool_call_id=str(i), tool_name=name, tool_kwargs=text)
            for i, (name, text) in enumerate(calls)
        ]
        return ChatMessage(role="assistant", blocks=blocks)

    tools = importlib.import_module("every_thing_llamaindex").TOOLS
    model = MockFunctionCallingLLM(response_generator=script)
    run = FunctionAgent(tools=tools, llm=model, streaming=False).run("go")
    is_error = {
        event.tool_id: event.tool_output.is_error
        async for event in run.stream_events()
        if isinstance(event, ToolCallResult)
    }
    await run
    outputs = {
        m.additional_kwargs["tool_call_id"]: m.content for m in turns[1][0] if m.role == "tool"
    }
    direct = {tool.metadata.name: tool for tool in tools}[calls[-1][0]]
    output = await asyncio.to_thread(direct.call, **calls[-1][1])  # an agent uses acall only
    assert json.loads(output.content) == output.raw_output
    functions = [tool.metadata.to_openai_tool()["function"] for tool in tools]
    schemas = {function["name"]: function["parameters"] for function in functions}
    descriptions = {function["name"]: function["description"] for function in functions}
    return schemas, descriptions, [(outputs[str(i)], is_error[str(i)]) for i in range(len(calls))]


async def agent_framework(folder: Path, calls: Calls) -> Received:
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatResponse,
        Content,
        FunctionInvocationLayer,
        Message,
    )

    requests: list[Any] = []

    class ScriptedClient(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]
        def _inner_get_response(self, *, messages: Any, options: Any, **more: Any) -> Any:
            requests.append((list(messages), options))
            contents = [Content.from_text("done")]
            if len(requests) == 1:
                contents = [
                    Content.from_function_call(call_id=str(i), name=name, arguments=text)
                    for i, (name, text) in enumerate(calls)
                ]

            async def respond() -> ChatResponse:
                return ChatResponse(messages=[Message(role="assistant", contents=contents)])

            return respond()

    tools = importlib.import_module("every_thing_agent_framework").TOOLS
    await Agent(ScriptedClient(), tools=tools).run("go")
    outputs = {
        content.call_id: content.result
        for message in requests[1][0]
        for content in message.contents
        if content.type == "function_result"
    }
    sent = [tool.to_json_schema_spec()["function"] for tool in requests[0][1]["tools"]]
    schemas = {function["name"]: function["parameters"] for function in sent}
    descriptions = {function["name"]: function["description"] for function in sent}
    return schemas, descriptions, [(outputs[str(i)], None) for i in range(len(calls))]


DRIVERS = {
    "openai": openai,
    "langchain": langchain,
    "adk": adk,
    "claude": claude,
    "copilot": copilot,
    "pydantic-ai": pydantic_ai,
    "crewai": crewai,
    "llamaindex": llamaindex,
    "agent-framework": agent_framework,
}


def main(target: str, *folders: str) -> None:
    for name in folders:
        folder = Path(name)
        sys.path.insert(0, name)
        calls = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
        schemas, descriptions, answers = asyncio.run(DRIVERS[target](folder, calls))
        received = {"schemas": schemas, "descriptions": descriptions, "answers": answers}
        (folder / "received.json").write_text(json.dumps(received), encoding="utf-8")
        sys.path[:] = [path for path in sys.path if path != name]
        for module in [key for key in sys.modules if "every_thing" in key.partition(".")[0]]:
            del sys.modules[module]


if __name__ == "__main__":
    main(*sys.argv[1:])
