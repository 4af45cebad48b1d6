"""MCP over HTTP for both generations of the protocol, and the memory of a server."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks import mentions, printed_metrics
from harness.envs import SERVERS, SERVING
from harness.model import Benchmark, Figure, Term

ERAS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}
CALLS = {"order": ("small calls", 1.5), "text": ("a text of 400 kB", 1.0)}
LIBRARIES = {"tooli": (SERVING, "tooli"), "the SDK 2.3": (SERVERS, "sdk")}
LIBRARIES["FastMCP 4.1"] = (SERVERS, "fastmcp")
IDLE_MB = 45


def mcp_over_http_benchmarks() -> Iterator[Benchmark]:
    """Yield calls over MCP of each kind for each library, and the memory of an idle server."""
    for era in ERAS:
        for tool in CALLS:
            for name, (venv, app) in LIBRARIES.items():
                args = ("run_mcp_http_probe.py", era, tool, f"run_mcp_http_{app}.py")
                check = mentions("cpu_us")
                key = f"mcphttp/{name}, {tool}, {era}"
                yield Benchmark(key, venv, args, check, printed_metrics, max_rounds=8)
    args = ("run_idle_probe.py", "run_served_tooli.py", "run_large_tooli.py")
    check = mentions("idle_mb")
    yield Benchmark("servermemory/tooli", SERVING, args, check, printed_metrics, max_rounds=5)


def mcp_over_http_figures() -> Iterator[Figure]:
    """Yield the calls per CPU second against each library, and the memory."""
    for era, version in ERAS.items():
        for tool, (what, bound) in CALLS.items():
            for name in LIBRARIES:
                if name != "tooli":
                    yield Figure(
                        "mcphttp",
                        f"calls per CPU second, MCP {version}, {what}",
                        Term(f"mcphttp/{name}, {tool}, {era}", "cpu_us"),
                        Term(f"mcphttp/tooli, {tool}, {era}", "cpu_us"),
                        bound,
                        at_least=True,
                        against=f"as many as {name}",
                    )
    idle = Term("servermemory/tooli", "idle_mb")
    label = "memory of an idle `api serve`, twenty typed tools"
    yield Figure("servermemory", label, idle, bound=IDLE_MB, unit="MB")
    growth = Term("servermemory/tooli", "growth_mb")
    result = Term("servermemory/tooli", "result_mb")
    label = "growth of the peak memory by a result of 2,000 models, of its size"
    yield Figure("servermemory", label, growth, result, 2.0)
