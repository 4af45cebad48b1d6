"""Compose dumps.json. Run this script after callers.json has changed.

A dump is the environment of a command that an agent runs. The variables of the agent are the
`measured` rows of callers.json, which were recorded from the real programs. The other variables
(shell, home, locale, terminal) are made up, as on an ordinary Linux account. Each dump lists which
variables were measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHELL = {
    "HOME": "/home/ada",
    "USER": "ada",
    "LOGNAME": "ada",
    "SHELL": "/bin/bash",
    "PATH": "/home/ada/.local/bin:/usr/local/bin:/usr/bin:/bin",
    "PWD": "/home/ada/work/shop",
    "LANG": "C.UTF-8",
    "EDITOR": "vim",
    "PAGER": "less",
    "TERM": "xterm-256color",
    "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
    "XDG_RUNTIME_DIR": "/run/user/1000",
}
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
# agent: (measured variables of callers.json, with a value if it has none; the expected caller)
MEASURED: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "claude-code": (
        {
            "CLAUDECODE": "1",
            "CLAUDE_CODE_CHILD_SESSION": "1",
            "AI_AGENT": "claude-code_2-1-325_agent",
            "CLAUDE_CODE_SESSION_ID": UUID,
            "CLAUDE_CODE_SESSION_ATTENDED": "0",
            "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
            "CLAUDE_PID": "4242",
        },
        {"agent": "claude-code", "version": "2.1.325", "session": UUID},
    ),
    "codex": (
        {
            "CODEX_THREAD_ID": "thread-1",
            "CODEX_SESSION_ID": UUID,
            "CODEX_CI": "1",
            "CODEX_VERSION": "0.98.0",
            "CODEX_TOOL_CALL_ID": "call_7",
        },
        {"agent": "codex", "version": "0.98.0", "session": UUID},
    ),
    "gemini-cli": ({"GEMINI_CLI": "1", "GEMINI_API_KEY": "x"}, {"agent": "gemini-cli"}),
    "qwen-code": ({"QWEN_CODE": "1"}, {"agent": "qwen-code"}),
    "copilot-cli": (
        {
            "COPILOT_CLI": "1",
            "COPILOT_AGENT_SESSION_ID": UUID,
            "COPILOT_CLI_BINARY_VERSION": "1.0.7",
        },
        {"agent": "copilot-cli", "version": "1.0.7", "session": UUID},
    ),
    "opencode": (
        {"OPENCODE": "1", "OPENCODE_PID": "99", "AGENT": "1"},
        {"agent": "opencode"},
    ),
    "pi": (
        {"PI_CODING_AGENT": "true", "PATH": f"/home/ada/.pi/agent/bin:{SHELL['PATH']}"},
        {"agent": "pi"},
    ),
    "aider": (
        {"OR_APP_NAME": "Aider", "OR_SITE_URL": "https://aider.chat"},
        {"agent": None, "shown": "aider"},
    ),
    "cline": (
        {"CLINE_WRAPPER_PATH": "/usr/local/lib/node_modules/cline/bin/cline"},
        {"agent": "cline"},
    ),
    "kimi-code": (
        {"TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"},
        {"agent": "kimi-code"},
    ),
    "mistral-vibe": (
        {"CI": "true", "NONINTERACTIVE": "1", "NO_TTY": "1"},
        {"agent": "mistral-vibe"},
    ),
    "openhands": ({"AI_AGENT": "openhands"}, {"agent": "openhands"}),
    "openhands-1.0": (
        {"PROMPT_COMMAND": 'export PS1="\n###PS1JSON###\n{}\n###PS1END###\n"'},
        {"agent": "openhands"},
    ),
    "continue-cn": ({}, {"agent": None}),
}


def compose() -> list[dict[str, Any]]:
    """Return every dump, with the expected caller and its sources."""
    return [
        {
            "program": name,
            "from": {
                "measured": sorted(own),
                "made up": "everything else, and the values of identifiers and versions",
            },
            "expected": expected,
            "environment": {**SHELL, **own},
        }
        for name, (own, expected) in MEASURED.items()
    ]


if __name__ == "__main__":
    text = json.dumps(compose(), indent=1) + "\n"
    (HERE / "dumps.json").write_text(text, encoding="utf-8")
