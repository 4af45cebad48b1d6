"""How much of the output of a command each agent passes on to its model.

An agent cuts longer output itself, at an arbitrary position, or shows nothing of it. The limits
were measured in the running agents, offline, with a model that follows a script. They apply to the
shell tool of the agent. tooli uses them on the command line for the detected caller, and over MCP
for the name in `clientInfo`. Claude Code, Cline and Goose have other limits for MCP, and a tool can
raise that of Claude Code.
"""

from __future__ import annotations

from tooli.core import Record

MEASURED_ON = "2026-11"
"""The month in which the limits were measured."""


class OutputLimit(Record):
    """The longest output that an agent passes on to its model."""

    agent: str
    amount: int
    unit: str  # "bytes" or "characters", which are units of UTF-16
    version: str  # of the agent that was measured
    beyond: str  # what the model sees of longer output
    max_lines: int | None = None
    drops_long_lines: bool = False  # nothing is shown of a line that exceeds the limit

    @property
    def text(self) -> str:
        """The limit as text, such as `30000 characters`."""
        return f"{self.amount} {self.unit}"


OUTPUT_LIMITS: dict[str, OutputLimit] = {
    limit.agent: limit
    for limit in (
        OutputLimit("claude-code", 30_000, "bytes", "2.1.326", "the first 2 KB"),
        OutputLimit("cline", 8_000, "characters", "3.0.65", "the beginning and the end"),
        # It is 40,000 bytes for the models in its catalogue, but the model is not known here.
        OutputLimit("codex", 10_000, "bytes", "0.169.0", "the beginning and the end"),
        # It is 20,480 with what Copilot CLI adds: a footer of 42 bytes.
        OutputLimit("copilot-cli", 20_400, "bytes", "1.0.102", "the first 500 characters"),
        # It is 40,000 with what Gemini CLI adds: a header and a footer, up to 100 characters.
        OutputLimit("gemini-cli", 39_900, "characters", "0.61.0", "the beginning and the end"),
        # It is 2,000 lines of each stream.
        OutputLimit("goose", 50_000, "bytes", "1.52.0", "the last lines", 1_990),
        # It is 50,000 with the `_meta` of a result, which Kimi Code shows as well.
        OutputLimit("kimi-code", 49_000, "characters", "2.1.0", "the beginning"),
        OutputLimit("mistral-vibe", 16_000, "bytes", "3.0", "the beginning"),
        # It is 1,999 lines with a header and with the line on stderr that reports the limit.
        OutputLimit("opencode", 51_200, "bytes", "1.18.33", "the last lines", 1_990, True),
        OutputLimit("pi", 51_200, "bytes", "0.73.1", "whole lines", 1_990, True),
        # It is 30,000 on the command line, with a header that repeats the command and its folder.
        OutputLimit("qwen-code", 28_000, "characters", "0.24.4", "the first 2 KB"),
    )
}
"""The agents with a known limit, by their name in `tooli.detect`."""

SERVER_OUTPUT_LIMITS: dict[str, OutputLimit] = {
    "claude-code": OutputLimit("claude-code", 50_000, "characters", "2.1.326", "the first 2 KB"),
    # It is 8,000 as JSON text, in which each quotation mark has two characters more.
    "cline": OutputLimit("cline", 5_000, "characters", "3.0.65", "the beginning and the end"),
    "goose": OutputLimit("goose", 200_000, "characters", "1.52.0", "the name of a file"),
}
"""The agents with another limit for MCP servers, or with a known limit only there."""

RESULT_SIZE_KEY = "anthropic/maxResultSizeChars"
"""The entry of a tool's `_meta` that replaces the limit of Claude Code for this tool."""

_CLIENT_NAMES = {
    "@cline/core": "cline",
    "codex-mcp-client": "codex",
    "gemini-cli-mcp-client": "gemini-cli",
    "goose-cli": "goose",
    "qwen-cli-mcp-client": "qwen-code",
    "qwen-code-mcp-client": "qwen-code",
}
"""Names in `clientInfo` that differ from the names in `tooli.detect`.

Qwen Code adds the name of the server: `qwen-cli-mcp-client-shop`.
"""


def find_output_limit(name: str | None) -> OutputLimit | None:
    """Return the limit of an agent on the command line, by its name in `tooli.detect`."""
    return OUTPUT_LIMITS.get(name) if name is not None else None


def find_server_limit(client: str | None, max_chars: int | None = None) -> OutputLimit | None:
    """Return the limit of an agent for MCP servers, by the name of its client.

    `max_chars` is the limit that the tool asks for.
    """
    if client is None:
        return None
    names = [name for name in _CLIENT_NAMES if f"{client}-".startswith(f"{name}-")]
    agent = _CLIENT_NAMES[names[0]] if names else client
    limit = SERVER_OUTPUT_LIMITS.get(agent)
    if limit is None:
        return OUTPUT_LIMITS.get(agent)
    is_raised = max_chars is not None and agent == "claude-code"
    return limit.replace(amount=max_chars) if is_raised else limit
