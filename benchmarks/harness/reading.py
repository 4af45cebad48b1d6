"""What agents are given to read about the help desk: how long it is, and what it answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.envs import NODE, OLD, PROJECT, SERVERS, SERVING
from harness.facts import facts
from harness.model import Contestant, Run
from harness.tokens import TokenCounter

OPENING = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n',
)
OURS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tooli --help-agent": (PROJECT, ("run_desk_tooli.py", "--help-agent")),
    "tooli SKILL.md": (PROJECT, ("run_desk_tooli.py", "generate-skill")),
    "tooli --agent-manifest": (PROJECT, ("run_desk_tooli.py", "--agent-manifest")),
    "tooli tools/list": (SERVING, ("run_desk_tooli.py", "mcp", "serve")),
}
THEIRS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "FastMCP tools/list": (SERVERS, ("run_desk_fastmcp.py",)),
    "incur --llms": (NODE, ("run_desk_incur.py", "--llms")),
    "incur --llms-full": (NODE, ("run_desk_incur.py", "--llms-full")),
    "incur --llms-full, JSON": (NODE, ("run_desk_incur.py", "--llms-full", "--format", "json")),
    "older tooli SKILL.md": (OLD, ("run_desk_old.py", "skill")),
    "older tooli manifest": (OLD, ("run_desk_old.py", "manifest")),
}


def text_of(run: Run) -> str:
    """What an agent reads: the output, or of a server the list of its tools as it is sent."""
    if not run.stdout.startswith('{"jsonrpc"'):
        return run.stdout.strip()
    answer: Any = json.loads(run.stdout.splitlines()[-1])
    return json.dumps(answer["result"]["tools"], separators=(",", ":"), ensure_ascii=False)


def silent_about(run: Run) -> str | None:
    """The questions that a text leaves open, by kind."""
    if run.code:
        return f"exit {run.code}"
    missing = Counter(fact.kind for fact in facts(text_of(run)) if not fact.known)
    told = [f"{kind} ({count})" if count > 1 else kind for kind, count in missing.items()]
    return f"does not say: {', '.join(told)}" if told else None


def reading(tokens: TokenCounter) -> Iterator[Contestant]:
    """Every text, counted and questioned."""

    def measure(run: Run) -> Mapping[str, float]:
        text = text_of(run)
        found = facts(text)
        known = sum(fact.known for fact in found)
        return {
            "tokens": float(tokens.count(text)),
            "facts": float(known),
            "open": float(len(found) - known),
            "bytes": float(len(text.encode())),
        }

    for name, (venv, args) in {**OURS, **THEIRS}.items():
        turns = OPENING if name.endswith("tools/list") else ()
        yield Contestant(
            f"tokens/{name}",
            venv,
            args,
            silent_about,
            measure,
            most_rounds=1,
            lenient=True,
            dialogue=turns,
        )
