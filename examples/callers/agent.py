"""Call a tooli program with subprocess: `python agent.py '*.py'`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any
from uuid import uuid4

FILE_TOOLS = shlex.split(os.environ.get("FILE_TOOLS", "file-tools"))
SESSION = f"session-{uuid4()}"


def call_file_tools(*args: str) -> Any:
    """Return the result of a call; raise RuntimeError with the suggestion if it fails."""
    env = {**os.environ, "TOOLI_CALLER": "my-agent", "TOOLI_SESSION_ID": SESSION}
    done = subprocess.run(
        [*FILE_TOOLS, *args, "--json"], env=env, capture_output=True, text=True, check=False
    )
    answer = json.loads(done.stdout)
    if not answer["ok"]:
        error = answer["error"]
        fix = (error.get("suggestion") or {}).get("fix", "")
        raise RuntimeError(f"{error['code']} {error['message']} {fix}".strip())
    return answer["result"]


if __name__ == "__main__":
    for file in call_file_tools("find-files", *sys.argv[1:]):
        print(file["path"])
