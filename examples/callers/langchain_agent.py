"""Call a tooli program as a tool of LangChain: `pip install langchain-core`.

Pass `find_files` to `create_agent(model, tools=[find_files])`, or to a `ToolNode` of LangGraph.
`file-tools export --target langchain` generates such tools for all commands.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import Any

from langchain_core.tools import ToolException, tool

FILE_TOOLS = shlex.split(os.environ.get("FILE_TOOLS", "file-tools"))


@tool
def find_files(pattern: str) -> list[dict[str, Any]]:
    """Find files by a pattern, such as *.py."""
    env = {**os.environ, "TOOLI_CALLER": "langchain"}
    done = subprocess.run(
        [*FILE_TOOLS, "find-files", pattern, "--json"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(done.stdout)
    if not answer["ok"]:
        raise ToolException(json.dumps(answer["error"]))
    return answer["result"]


# The model reads the error and its suggestion.
setattr(find_files, "handle_tool_error", True)  # noqa: B010
