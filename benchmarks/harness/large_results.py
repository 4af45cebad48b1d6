"""Calls with large results, over HTTP and over stdio, and the requests of a coding agent."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.checks import mentions, printed_metrics
from harness.envs import SERVERS, SERVING
from harness.model import Benchmark, Figure, Term

RESULTS = {
    "100 models": ("items", "100"),
    "2,000 models": ("items", "2000"),
    "1 MB of text": ("text", "1"),
}
SERVED_BY = {
    "http": {"tooli": (SERVING, "tooli"), "FastAPI": (SERVERS, "fastapi")},
    "stdio": {"tooli": (SERVING, "tooli"), "the SDK 2.3": (SERVERS, "sdk")},
}
BOUNDS = {
    ("http", "100 models"): 1.0,
    ("http", "2,000 models"): 1.0,
    ("http", "1 MB of text"): 1.0,
    ("stdio", "2,000 models"): 1.0,
    ("stdio", "1 MB of text"): 1.0,
}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_LISTEN = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
AGENT_REQUESTS = tuple(
    json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": {**params, "_meta": _META}})
    + "\n"
    for i, (method, params) in enumerate(
        (
            ("server/discover", {}),
            ("subscriptions/listen", _LISTEN),
            ("prompts/list", {}),
            ("resources/list", {}),
            ("tools/list", {}),
        )
    )
)
"""The requests that Claude Code sends when it starts a server."""


def large_result_benchmarks() -> Iterator[Benchmark]:
    """Yield calls with each large result, for each transport and library."""
    for transport, servers in SERVED_BY.items():
        for label, (tool, count) in RESULTS.items():
            for name, (venv, app) in servers.items():
                args = ("run_large_probe.py", transport, tool, count, f"run_large_{app}.py")
                yield Benchmark(
                    f"large/{name}, {label}, {transport}",
                    venv,
                    args,
                    mentions("cpu_us"),
                    printed_metrics,
                    max_rounds=8,
                )


def large_result_figures() -> Iterator[Figure]:
    """Yield the calls per CPU second, compared with the other library."""
    for transport, servers in SERVED_BY.items():
        peer = next(name for name in servers if name != "tooli")
        for label in RESULTS:
            yield Figure(
                "large",
                f"calls per CPU second over {transport}, {label}",
                Term(f"large/{peer}, {label}, {transport}", "cpu_us"),
                Term(f"large/tooli, {label}, {transport}", "cpu_us"),
                BOUNDS.get((transport, label)),
                at_least=True,
                against=f"as many as {peer}",
            )
