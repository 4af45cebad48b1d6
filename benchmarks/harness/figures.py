"""The figures of the report and their targets."""

from __future__ import annotations

from collections.abc import Iterator

from harness.agent_documents import PEER_DOCUMENTS, TOOLI_DOCUMENTS
from harness.cases import GUARDS
from harness.large_results import large_result_figures
from harness.mcp_over_http import mcp_over_http_figures
from harness.model import Figure, Term, TokenRatio
from harness.openapi_documents import openapi_figures
from harness.output_formats import output_format_figures
from harness.real_apps import real_app_figures

COMMAND_LINES = {
    "usage": "usage error as JSON",
    "help": "`--help-agent`",
    "schema": "`--schema` of plain types",
}
APPS = {"": "two-command app", "7": "seven-parameter app"}
PEER_NAMES = {
    "FastMCP": "FastMCP 4.1",
    "SDK": "the SDK 2.3",
    "FastAPI": "FastAPI",
    "Litestar": "Litestar 2.25",
}


def compared_with_argparse(case: str, label: str, bound: float) -> Figure:
    """Return the CPU time as a ratio to argparse."""
    tooli, peer = Term(f"{case}/tooli"), Term(f"{case}/argparse")
    return Figure(case, label, tooli, peer, bound, against="argparse")


def faster_than_typer(case: str, label: str, bound: float) -> Figure:
    """Return how many times faster than Typer tooli is."""
    typer, tooli = Term(f"{case}/typer"), Term(f"{case}/tooli")
    return Figure(case, label, typer, tooli, bound, at_least=True, against="faster than Typer 0.29")


def startup_figures() -> Iterator[Figure]:
    """Yield the figures of cold starts."""
    for case, label, slowest, speedup in (
        ("two-commands", "two-command app, `cmd … --json`", 0.60, 10),
        ("seven-parameters", "seven-parameter app, `--json`", 1.0, 5.5),
    ):
        yield compared_with_argparse(case, label, slowest)
        yield faster_than_typer(case, label, speedup)
    for suffix, app in APPS.items():
        for case, what in COMMAND_LINES.items():
            yield compared_with_argparse(f"{case}{suffix}", f"{what}, {app}", 1.1)
    tooli, peer = Term("typer/tooli"), Term("seven-parameters/typer")
    yield Figure("typer", "the author imports typer", tooli, peer, 0.45, against="Typer 0.29")
    tooli, peer = Term("two-commands/tooli", "rss_mb"), Term("two-commands/argparse", "rss_mb")
    yield Figure("memory", "peak memory, two-command app", tooli, peer, 1.2, against="argparse")


def app_size_figures() -> Iterator[Figure]:
    """Yield the figures of large apps, compared with small ones."""
    for name in ("tooli", "argparse", "click", "typer", "older tooli"):
        large, small = Term(f"many/{name} 200"), Term(f"many/{name} 2")
        bound = 1.3 if name == "tooli" else None
        yield Figure("many", f"200 commands against 2, {name}", large, small, bound)
    label, tooli = "schemas of 50 commands", Term("schemas/tooli")
    yield Figure("schemas", label, tooli, bound=0.2, unit="s", scale=0.001)
    older = Term("schemas/older tooli")
    yield Figure("schemas", label, tooli, older, 0.5, against="older tooli")


def python_call_figures() -> Iterator[Figure]:
    """Yield the overhead of `app.call` compared with a direct call."""
    for name, bound in (("tooli", 5), ("older tooli", None)):
        for size in (2, 50):
            label = f"overhead of `app.call`, {size} commands, {name}"
            overhead = Term(f"call/{name} {size}", "overhead_us")
            yield Figure("call", label, overhead, bound=bound, unit="µs", stat="min")
        large, small = Term(f"call/{name} 50", "call_us"), Term(f"call/{name} 2", "call_us")
        label = f"`app.call`, 50 commands against 2, {name}"
        yield Figure("call", label, large, small, bound and 1.2, stat="min")


def caller_figures() -> Iterator[Figure]:
    """Yield the cost of agents as callers, of settings files, and of detection."""
    for name, label, bound in (
        ("agent", "two-command app, an agent calls", 0.60),
        ("agent and settings", "two-command app, an agent calls, with a `.tooli.yaml`", None),
    ):
        tooli, peer = Term(f"agent/{name}"), Term("two-commands/argparse")
        yield Figure("agent", label, tooli, peer, bound, against="argparse")
    for caller in ("nobody", "tooli-caller", "claude-code"):
        cost = Term(f"detect/{caller}", "detect_us")
        yield Figure("detect", f"detection: {caller}", cost, bound=1000, unit="µs", stat="min")


def guard_figures() -> Iterator[Figure]:
    """Yield the cost of each safety feature."""
    for name, label in GUARDS.items():
        guarded, plain = Term(f"guarded/{name}"), Term("two-commands/tooli")
        yield Figure("guarded", label, guarded, plain, against="the plain command")


def sanitize_figures() -> Iterator[Figure]:
    """Yield the throughput of the sanitizer."""
    for kind, bound in (("clean", 50), ("clean, many scripts", 50), ("dirty", None)):
        speed = Term(f"sanitize/{kind}", "mb_per_s")
        yield Figure(
            "sanitize", f"sanitizer: {kind} text", speed, None, bound, at_least=True, unit="MB/s"
        )


def stream_figures() -> Iterator[Figure]:
    """Yield the memory of long streams, and the delay of their first row."""
    million, thousand = Term("jsonl/tooli 1M", "rss_mb"), Term("jsonl/tooli 1k", "rss_mb")
    yield Figure("jsonl", "peak memory, 1,000,000 rows against 1,000", million, thousand, 1.1)
    for name, label, bound in (
        ("tooli 1M", "time to the first of 1,000,000 rows, of the total time", 0.1),
        ("tooli 5 slow", "time to the first of 5 rows 0.1 s apart, of the total time", 0.5),
    ):
        first, whole = Term(f"jsonl/{name}", "first_ms"), Term(f"jsonl/{name}", "wall_ms")
        yield Figure("jsonl", label, first, whole, bound)
    tooli, peer = Term("jsonl/tooli 1M", "rows_per_s"), Term("jsonl/argparse 1M", "rows_per_s")
    against = "as many as a loop with `json.dumps`"
    yield Figure("jsonl", "rows per second", tooli, peer, 1.0, at_least=True, against=against)


def filter_figures() -> Iterator[Figure]:
    """Yield filtering by tooli, compared with jq."""
    tooli, label = Term("filter/tooli"), "filter and select of 100,000 records"
    for name in ("tooli into jq", "argparse into jq", "jq alone, on a file"):
        yield Figure("filter", f"{label}, against {name}", tooli, Term(f"filter/{name}"))


def envelope_figures() -> Iterator[Figure]:
    """Yield the tokens of the envelope."""
    for name, bound in (("tooli", 30), ("older tooli", None)):
        label = f"envelope of an empty result, {name}"
        cost = Term(f"envelope/{name}", "tokens")
        yield Figure("envelope", label, cost, bound=bound, unit="tokens")


def document_figures() -> Iterator[Figure]:
    """Yield the tokens of the documents for agents, and the questions that they do not answer."""
    peers = tuple(f"tokens/{name}" for name in PEER_DOCUMENTS)
    for name in TOOLI_DOCUMENTS:
        key = f"tokens/{name}"
        document = name.removeprefix("tooli ")
        label, against = f"tokens of {document}", "the shortest peer that answers as much"
        tokens = Term(key, "tokens")
        yield TokenRatio("tokens", label, tokens, bound=1.0, against=against, peers=peers)
        # The MCP protocol itself defines calls and errors, so `tools/list` does not explain them.
        bound = None if document == "tools/list" else 0
        label, unanswered = f"unanswered questions in {document}", Term(key, "unanswered")
        yield Figure("tokens", label, unanswered, bound=bound, unit="questions")


def server_figures() -> Iterator[Figure]:
    """Yield the start-up of servers, and the rate of calls."""
    label = "start of a stdio server to `tools/list`"
    for name, bound in (("FastMCP", 0.05), ("SDK", 0.1)):
        tooli, peer = Term("mcp/tooli"), Term(f"mcp/{name}")
        yield Figure("mcp", label, tooli, peer, bound, against=PEER_NAMES[name])
        tooli, peer = Term("mcp/tooli", "rss_mb"), Term(f"mcp/{name}", "rss_mb")
        yield Figure("mcp", f"peak memory at `tools/list`, against {PEER_NAMES[name]}", tooli, peer)
    tooli, peer = Term("mcpstart/tooli"), Term("mcpstart/FastMCP")
    label = "start of a stdio server to the last answer"
    yield Figure("mcpstart", label, tooli, peer, 0.15, against=PEER_NAMES["FastMCP"])
    # The ratio of the times per call is the inverse ratio of the calls per second.
    for case, name, bound in (
        ("mcpcalls", "FastMCP", 5),
        ("mcpcalls", "SDK", None),
        ("http", "FastAPI", 2),
        ("http", "Litestar", 1.6),
    ):
        transport = "stdio" if case == "mcpcalls" else "HTTP"
        against = f"as many as {PEER_NAMES[name]}"
        for metric, what in (("wall_us", "calls per second"), ("cpu_us", "calls per CPU second")):
            label = f"{what} over {transport}" + ("" if bound else f", against {PEER_NAMES[name]}")
            peer, tooli = Term(f"{case}/{name}", metric), Term(f"{case}/tooli", metric)
            yield Figure(case, label, peer, tooli, bound, at_least=True, against=against)


FIGURES: tuple[Figure, ...] = (
    *startup_figures(),
    *app_size_figures(),
    *python_call_figures(),
    *caller_figures(),
    *guard_figures(),
    *sanitize_figures(),
    *stream_figures(),
    *filter_figures(),
    *envelope_figures(),
    *document_figures(),
    *output_format_figures(),
    *server_figures(),
    *large_result_figures(),
    *mcp_over_http_figures(),
    *openapi_figures(),
    *real_app_figures(),
)
