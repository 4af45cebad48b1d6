"""How the command line suits its caller: one table, which the tests and the documents read, too.

It decides how things are said, never what is allowed: whoever seems to be calling, a
destructive command needs its `--yes`, and one that needs a human's approval needs the human.
"""

from __future__ import annotations

from tooli.core.record import Record

AGENT_TIMEOUT = 120.0
"""Seconds that a call takes at most for an agent, where `TOOLI_TIMEOUT` says nothing else."""


class CallerProfile(Record):
    """What a kind of caller gets where nobody says otherwise."""

    output: str = "auto"  # "auto": text at a terminal, JSON anywhere else
    help: str = "auto"  # "auto": Typer's pages at a terminal, plain text anywhere else
    errors: str = "brief"  # in text modes: "brief" leaves details to -v, "full" shows them
    timeout: float | None = None
    confirm: str = "ask"  # "ask", where somebody can answer; "agree": with agent_auto_confirm
    color: str = "auto"
    printed: str = "as it is"  # of a command that prints: "as it is", or as the "result"


CALLER_PROFILES: dict[str, CallerProfile] = {
    "human": CallerProfile(),
    "ai_agent": CallerProfile(
        output="json",
        help="compact",
        errors="full",
        timeout=AGENT_TIMEOUT,
        confirm="agree",
        color="never",
        printed="result",
    ),
    "ci_cd": CallerProfile(output="json", help="plain", errors="full", color="never"),
    "container": CallerProfile(),
    "unknown_automation": CallerProfile(),
    "python_api": CallerProfile(),
}
"""Each kind of caller, and what it gets."""
