"""A model server on 127.0.0.1 that follows a script, for running real agent programs offline.

It speaks the four protocols that the programs use: OpenAI's Responses and Chat Completions,
Anthropic's Messages, and Gemini's generateContent. A script is a list of tool calls. The server
asks for them one after the other, then ends the conversation. What the program sends in the next
request is what its model sees of the result.
"""

from __future__ import annotations

import json
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

FINAL_TEXT = "The script has ended."
_STEP = "step"  # start of the ids of scripted calls: other calls only load tools


class Call(NamedTuple):
    """A tool that the model calls: the end of its name, and its arguments."""

    tool: str
    arguments: Json


class Conversation(NamedTuple):
    """What one request tells the model."""

    tools: dict[str, Json]  # by name
    instructions: str  # system prompt and messages of the user
    results: dict[str, str]  # text of tool results, by the id of the call


class Answer(NamedTuple):
    """What the model answers: a tool call with an id, or text."""

    call_id: str = ""
    tool: str = ""
    arguments: Json = {}
    text: str = FINAL_TEXT


class ScriptedModel:
    """The server. With `answer`, this function answers, not the script.

    `results` has the text that the model got for each call of the script. It is None for a tool
    that the program does not offer.
    """

    def __init__(
        self, script: list[Call], answer: Callable[[Conversation], Answer] | None = None
    ) -> None:
        self.script = script
        self._custom_answer = answer
        self.conversations: list[Conversation] = []
        self.output = ""  # of the program, for messages
        self._missing: set[int] = set()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.answer = self._answer  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def instructions(self) -> str:
        """All instructions and descriptions of tools that the model received."""
        tools = json.dumps(self.tools, ensure_ascii=False)
        return "\n".join([*(one.instructions for one in self.conversations), tools])

    @property
    def tools(self) -> dict[str, Json]:
        """All tools that the model received, by name."""
        return {name: tool for one in self.conversations for name, tool in one.tools.items()}

    @property
    def results(self) -> list[str | None]:
        """The results of the script's calls, in their order, as the model first received them.

        A program may shorten them in later requests.
        """
        found: dict[str, str] = {}
        for conversation in self.conversations:
            found = {**conversation.results, **found}
        return [found.get(f"{_STEP}{index}") for index in range(len(self.script))]

    def _answer(self, conversation: Conversation) -> Answer:
        with self._lock:
            self.conversations.append(conversation)
            if self._custom_answer is not None:
                return self._custom_answer(conversation)
            for index, step in enumerate(self.script):
                if f"{_STEP}{index}" in conversation.results or index in self._missing:
                    continue
                if not conversation.tools:
                    break  # a request for a title
                name = _find_tool(conversation.tools, step.tool)
                if name is not None:
                    return Answer(f"{_STEP}{index}", name, step.arguments)
                load = self._load_tools(conversation, step)
                if load is not None:
                    return load
                self._missing.add(index)
            return Answer()

    def _load_tools(self, conversation: Conversation, step: Call) -> Answer | None:
        """Ask Claude Code to wait for servers, and to load a tool that it lists by name only."""
        for loader, arguments in (
            ("WaitForMcpServers", {}),
            ("ToolSearch", {"query": f"select:{step.tool}"}),
        ):
            call_id = f"{loader}{step.tool}"
            if loader in conversation.tools and call_id not in conversation.results:
                return Answer(call_id, loader, arguments)
        return None


def _find_tool(tools: dict[str, Json], end: str) -> str | None:
    exact = [name for name in tools if name == end]
    return next(iter(exact or [name for name in tools if name.endswith(end)]), None)


# ------------------------------------------------------------------ HTTP


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._send_json({"data": [], "models": []})

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = self._read_body()
        for end, protocol in _PROTOCOLS.items():
            if path.endswith(end):
                reply = protocol(json.loads(body), self.server.answer, path)  # type: ignore[attr-defined]
                return (
                    self._send_json(reply) if isinstance(reply, dict) else self._send_events(reply)
                )
        self._send_json({})

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return zlib.decompress(body, 31) if self.headers.get("Content-Encoding") == "gzip" else body

    def _send_json(self, data: Json) -> None:
        self._send(json.dumps(data).encode(), "application/json")

    def _send_events(self, events: list[tuple[str, Json | str]]) -> None:
        lines: list[str] = []
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            lines.append(f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n")
        self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _text(content: Any) -> str:
    """Return the text of a message or result: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(_text, content))
    if isinstance(content, dict):
        inner = content.get("text", content.get("content"))
        return _text(inner) if inner is not None else json.dumps(content, ensure_ascii=False)
    return "" if content is None else str(content)


# ------------------------------------------------------------------ the protocols


def _responses(request: Json, answer: Any, path: str) -> Any:
    """OpenAI's Responses. Codex sends the tools of a server as a namespace."""
    tools: dict[str, Json] = {}
    namespaces: dict[str, str] = {}
    for tool in request.get("tools", ()):
        if tool.get("type") == "namespace":
            for inner in tool.get("tools", ()):
                tools[inner["name"]] = inner
                namespaces[inner["name"]] = tool["name"]
        else:
            tools[tool.get("name") or tool["type"]] = tool
    texts = [request.get("instructions") or ""]
    results: dict[str, str] = {}
    for item in request.get("input", ()):
        if str(item.get("type")).endswith("call_output"):
            results[item["call_id"]] = _text(item.get("output"))
        elif "content" in item:
            texts.append(_text(item["content"]))
    reply: Answer = answer(Conversation(tools, "\n".join(texts), results))
    if reply.tool:
        item = {
            "type": "function_call",
            "id": f"fc_{reply.call_id}",
            "call_id": reply.call_id,
            "name": reply.tool,
            "arguments": json.dumps(reply.arguments),
            "status": "completed",
        }
        if reply.tool in namespaces:
            item["namespace"] = namespaces[reply.tool]
    else:
        content = {"type": "output_text", "text": reply.text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [content]}
        item["status"] = "completed"
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "output": []}
    response = {**response, "model": request.get("model"), "status": "in_progress"}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    events: list[Json] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return [(event["type"], event) for event in events] if request.get("stream") else done


def _messages(request: Json, answer: Any, path: str) -> Any:
    """Anthropic's Messages."""
    tools = {tool["name"]: tool for tool in request.get("tools", ())}
    texts = [_text(request.get("system"))]
    results: dict[str, str] = {}
    for message in request.get("messages", ()):
        content = message["content"]
        for block in content if isinstance(content, list) else [{"text": content}]:
            if block.get("type") == "tool_result":
                results[block["tool_use_id"]] = _text(block.get("content"))
            elif message["role"] != "assistant":
                texts.append(_text(block))
    reply: Answer = answer(Conversation(tools, "\n".join(texts), results))
    if reply.tool:
        block = {"type": "tool_use", "id": reply.call_id, "name": reply.tool}
        whole = {**block, "input": reply.arguments}
        empty: Json = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    else:
        whole, empty = {"type": "text", "text": reply.text}, {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": reply.text}
    end = {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    message["model"] = request.get("model")
    message["usage"] = {"input_tokens": 1, "output_tokens": 1}
    if not request.get("stream"):
        return {**message, **end, "content": [whole]}
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


def _chat_completions(request: Json, answer: Any, path: str) -> Any:
    """OpenAI's Chat Completions."""
    tools = {tool["function"]["name"]: tool["function"] for tool in request.get("tools") or ()}
    texts: list[str] = []
    results: dict[str, str] = {}
    for message in request.get("messages", ()):
        if message["role"] == "tool":
            results[message["tool_call_id"]] = _text(message.get("content"))
        elif message["role"] != "assistant":
            texts.append(_text(message.get("content")))
    reply: Answer = answer(Conversation(tools, "\n".join(texts), results))
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.tool:
        function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
        call = {"index": 0, "id": reply.call_id, "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if reply.tool else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "chat_1", "created": 1, "model": request.get("model"), "usage": usage}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**head, "object": "chat.completion", "choices": [choice]}
    chunk = {**head, "object": "chat.completion.chunk"}
    first = {"index": 0, "delta": message, "finish_reason": None}
    last: Json = {"index": 0, "delta": {}, "finish_reason": reason}
    return [("", {**chunk, "choices": [first]}), ("", {**chunk, "choices": [last]}), ("", "[DONE]")]


def _generate_content(request: Json, answer: Any, path: str) -> Any:
    """Gemini's generateContent."""
    tools = {
        tool["name"]: tool
        for group in request.get("tools", ())
        for tool in group.get("functionDeclarations", ())
    }
    texts = [_text((request.get("systemInstruction") or {}).get("parts"))]
    results: dict[str, str] = {}
    for content in request.get("contents", ()):
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                found = part["functionResponse"]
                call_id = found.get("id") or f"{_STEP}{len(results)}"
                results[call_id] = json.dumps(found["response"], ensure_ascii=False)
            elif content.get("role") == "user":
                texts.append(_text(part))
    reply: Answer = answer(Conversation(tools, "\n".join(texts), results))
    part: Json = {"text": reply.text}
    if reply.tool:
        call = {"name": reply.tool, "args": reply.arguments, "id": reply.call_id}
        part = {"functionCall": call}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
    return [("", whole)] if path.endswith(":streamGenerateContent") else whole


_PROTOCOLS: dict[str, Any] = {
    "/responses": _responses,
    "/messages/count_tokens": lambda request, answer, path: {"input_tokens": 1},
    "/messages": _messages,
    "/chat/completions": _chat_completions,
    ":generateContent": _generate_content,
    ":streamGenerateContent": _generate_content,
    ":countTokens": lambda request, answer, path: {"totalTokens": 1},
}
