"""How much of the output of a command each agent passes on to its model.

An agent cuts longer output itself, at an arbitrary position, or shows nothing of it. The limits
were measured in the running agents, offline, with a model that follows a script. They apply to the
shell tool of the agent. tooli uses them on the command line for the detected caller, and over MCP
for the name in `clientInfo`.
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
        OutputLimit("claude-code", 30_000, "characters", "2.1", "the first 2 KB"),
        # It is 40,000 bytes for the models in its catalogue, but the model is not known here.
        OutputLimit("codex", 10_000, "bytes", "0.166", "the beginning and the end"),
        OutputLimit("copilot-cli", 20_000, "bytes", "1.0", "a part"),
        OutputLimit("gemini-cli", 40_000, "characters", "0.61", "a part"),
        OutputLimit("mistral-vibe", 16_000, "bytes", "3.0", "the beginning"),
        OutputLimit("opencode", 51_200, "bytes", "1.18", "whole lines", 2000, True),
        OutputLimit("pi", 51_200, "bytes", "0.74", "whole lines", 2000, True),
        OutputLimit("qwen-code", 20_000, "bytes", "0.15", "a part"),
    )
}
"""The agents with a known limit, by their name in `tooli.detect`."""

_CLIENT_NAMES = {
    "codex-mcp-client": "codex",
    "gemini-cli-mcp-client": "gemini-cli",
    "qwen-code-mcp-client": "qwen-code",
}
"""Names in `clientInfo` that differ from the names in `tooli.detect`."""


def find_output_limit(name: str | None) -> OutputLimit | None:
    """Return the limit of an agent, by its name or by the name of its MCP client."""
    if name is None:
        return None
    return OUTPUT_LIMITS.get(_CLIENT_NAMES.get(name, name))
