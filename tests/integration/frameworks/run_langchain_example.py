"""Run examples/callers/langchain_agent.py in an agent of LangChain whose model is scripted.

Prints the status and the content of each answer that the model receives, as JSON.
"""

from __future__ import annotations

import json
from typing import Any

from langchain.agents import create_agent
from langchain_agent import find_files
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

PATTERNS = ("*.py", "*.nosuch")


class ScriptedChatModel(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self


calls = [
    {"name": "find_files", "args": {"pattern": pattern}, "id": pattern, "type": "tool_call"}
    for pattern in PATTERNS
]
script = iter([AIMessage("", tool_calls=calls), AIMessage("done")])
agent: Any = create_agent(ScriptedChatModel(messages=script), [find_files])
done = agent.invoke({"messages": [("user", "go")]})
answers = {m.tool_call_id: m for m in done["messages"] if isinstance(m, ToolMessage)}
print(json.dumps([(answers[p].status, json.loads(answers[p].content)) for p in PATTERNS]))
