"""The documents for agents about the help desk: their length, and the questions they answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.envs import NODE, OLD, PROJECT, SERVERS, SERVING
from harness.facts import check_facts
from harness.model import Benchmark, Run
from harness.tokens import TokenCounter

LIST_TOOLS_REQUESTS = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n',
)
TOOLI_DOCUMENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tooli --help-agent": (PROJECT, ("run_desk_tooli.py", "--help-agent")),
    "tooli SKILL.md": (PROJECT, ("run_desk_tooli.py", "generate-skill")),
    "tooli --agent-manifest": (PROJECT, ("run_desk_tooli.py", "--agent-manifest")),
    "tooli tools/list": (SERVING, ("run_desk_tooli.py", "mcp", "serve")),
}
PEER_DOCUMENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "FastMCP tools/list": (SERVERS, ("run_desk_fastmcp.py",)),
    "incur --llms": (NODE, ("run_desk_incur.py", "--llms")),
    "incur --llms-full": (NODE, ("run_desk_incur.py", "--llms-full")),
    "incur --llms-full, JSON": (NODE, ("run_desk_incur.py", "--llms-full", "--format", "json")),
    "older tooli SKILL.md": (OLD, ("run_desk_old.py", "skill")),
    "older tooli manifest": (OLD, ("run_desk_old.py", "manifest")),
}


def document_text(run: Run) -> str:
    """Return the output of a command, or the list of tools of an MCP server."""
    if not run.stdout.startswith('{"jsonrpc"'):
        return run.stdout.strip()
    answer: Any = json.loads(run.stdout.splitlines()[-1])
    return json.dumps(answer["result"]["tools"], separators=(",", ":"), ensure_ascii=False)


def unanswered_questions(run: Run) -> str | None:
    """Return the questions that a document does not answer, by kind, or None."""
    if run.code:
        return f"exit {run.code}"
    missing = Counter(fact.kind for fact in check_facts(document_text(run)) if not fact.known)
    kinds = [f"{kind} ({count})" if count > 1 else kind for kind, count in missing.items()]
    return f"does not answer: {', '.join(kinds)}" if kinds else None


def document_benchmarks(tokens: TokenCounter) -> Iterator[Benchmark]:
    """Yield a benchmark for each document."""

    def measure(run: Run) -> Mapping[str, float]:
        text = document_text(run)
        found = check_facts(text)
        known = sum(fact.known for fact in found)
        answers = {"answered": float(known), "unanswered": float(len(found) - known)}
        return {**tokens.metrics(text), **answers}

    for name, (venv, args) in {**TOOLI_DOCUMENTS, **PEER_DOCUMENTS}.items():
        requests = LIST_TOOLS_REQUESTS if name.endswith("tools/list") else ()
        yield Benchmark(
            f"tokens/{name}",
            venv,
            args,
            unanswered_questions,
            measure,
            max_rounds=1,
            lenient=True,
            requests=requests,
        )
