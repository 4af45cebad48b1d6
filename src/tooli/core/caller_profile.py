"""Caller profiles: the defaults of the command line for each kind of caller.

A profile changes how output looks, never what is allowed. Detection can be wrong or deceived.
Therefore a destructive command needs `--yes`, and an approval needs a human, for every caller.
"""

from __future__ import annotations

from tooli.core.record import Record

AGENT_TIMEOUT = 120.0
"""Default timeout of an agent's calls, in seconds. `TOOLI_TIMEOUT` overrides it."""


class CallerProfile(Record):
    """Defaults for one kind of caller."""

    output: str = "auto"  # "auto": text on a terminal, JSON elsewhere
    help: str = "auto"  # "auto": Typer's help on a terminal, plain text elsewhere
    errors: str = "brief"  # in text modes: "brief" shows details with -v only
    timeout: float | None = None
    confirm: str = "ask"  # "agree": answer yes if the command has agent_auto_confirm
    color: str = "auto"
    printed: str = "as it is"  # printed text stays on stdout; "result": it is the result


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
"""The profile of each kind of caller."""
