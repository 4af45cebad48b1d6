"""The cases of the benchmarks, and the command lines that are measured in each.

To add a case, add an entry to `CASES`, a function with its benchmarks to `build_benchmarks`, and
its figures to `figures.py`. A benchmark that measures something inside its process prints the
metrics as a JSON object and has `read_metrics=printed_metrics`. A server has `requests`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.agent_documents import LIST_TOOLS_REQUESTS, document_benchmarks
from harness.checks import (
    failed_usage,
    json_result,
    lists_tools,
    mentions,
    printed_metrics,
    prints,
    row_count,
)
from harness.envs import OLD, PEERS, PROJECT, SERVERS, SERVING
from harness.jq import find_jq
from harness.large_results import AGENT_REQUESTS, large_result_benchmarks
from harness.mcp_over_http import mcp_over_http_benchmarks
from harness.model import Benchmark, Check, Run
from harness.openapi_documents import openapi_benchmarks
from harness.output_formats import output_format_benchmarks
from harness.real_apps import real_app_benchmarks
from harness.servers import TOOLS
from harness.tokens import TokenCounter

CASES: dict[str, str] = {
    "two-commands": "Two-command app, `hello bob --count 2 --json`",
    "seven-parameters": "Seven-parameter app of common types, `--json`",
    "usage": "Usage error (`--count many`), two-command app",
    "usage7": "Usage error (`--count many`), seven-parameter app",
    "help": "`--help-agent` (the others: `--help`), two-command app",
    "help7": "`--help-agent` (the others: `--help`), seven-parameter app",
    "schema": "`--schema` of one command (argparse: `--help`), two-command app",
    "schema7": "`--schema` of one command (argparse: `--help`), seven-parameter app",
    "typer": "Seven-parameter app that uses `import typer` and `typer.Option`",
    "many": "One command of an app with 2 or 200, `--json`",
    "memory": "Peak memory of the two-command app",
    "agent": "The two-command app for an agent, without and with a `.tooli.yaml`",
    "guarded": "The two-command app with a safety feature on its command",
    "detect": "Detection of the caller from its environment",
    "sanitize": "Sanitize a text of four megabytes",
    "call": "Overhead of `app.call` compared with a direct call, by number of commands",
    "schemas": "Schemas of all commands of an app with fifty",
    "jsonl": "`--jsonl` from a generator into a pipe",
    "filter": "`--filter` and `--select` over 100,000 records, compared with jq",
    "envelope": "The JSON envelope around an empty list",
    "tokens": "Documents for agents about an app of twenty commands: tokens, and what they contain",
    "answer": "One result of forty records, in every output format",
    "mcp": "MCP over stdio, twenty typed tools, from the start to the answer to `tools/list`",
    "mcpcalls": "MCP over stdio, consecutive `tools/call` of one tool",
    "http": "HTTP with uvicorn, calls of one tool on eight connections",
    "mcpstart": "MCP over stdio, the requests that Claude Code sends when it starts a server",
    "mcphttp": "MCP over HTTP, `tools/call` with answers as JSON",
    "servermemory": "Memory of `api serve`, idle and with large results",
    "large": "Calls with large results: pydantic models, and a long text",
    "openapi": "List the operations of large OpenAPI documents",
    "apps": "Sixteen Typer applications from the package index, with Tooli in Typer's place",
}

GUARDS = {
    "destructive": "a destructive command with `--yes`, with two entries in the audit log",
    "dry-run": "a dry run, with a token for its plan",
    "capabilities": "declared capabilities, monitored",
    "timeout": "a timeout, in a separate process",
    "isolation": "isolation, with Landlock and seccomp",
    "key": "a new idempotency key (SQLite on the local disk)",
    "replay": "an idempotency key that was used before",
}
AGENT_VARIABLES = ("CLAUDECODE=1", "AI_AGENT=claude-code_2-1-325_agent")
TWO = ("hello", "bob", "--count", "2", "--json")
SEVEN = (
    *("convert", "bob", "--count", "3", "--verbose", "--path", "src", "--mode", "fast"),
    *("--tag", "a", "--tag", "b", "--note", "hi", "--json"),
)
SEVEN_RESULT = {
    "name": "bob",
    "count": 3,
    "verbose": True,
    "path": "src",
    "mode": "fast",
    "tag": ["a", "b"],
    "note": "hi",
}
FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "tooli": (PROJECT, "tooli"),
    "argparse": (PEERS, "argparse"),
    "click": (PEERS, "click"),
    "typer": (PEERS, "typer"),
    "older tooli": (OLD, "tooli"),
}
MCP_SERVERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tooli": (SERVING, ("run_served_tooli.py", "mcp", "serve")),
    "SDK": (SERVERS, ("run_served_sdk.py",)),
    "FastMCP": (SERVERS, ("run_served_fastmcp.py",)),
}
ORDER = {"count": "integer", "item": "string", "price": "number"}


def for_each_framework(
    case: str, app: str, arguments: Sequence[str], check: Check
) -> Iterator[Benchmark]:
    """Yield a benchmark of the same arguments for the app in each framework."""
    for name, (_, framework) in FRAMEWORKS.items():
        yield in_framework(case, name, app.format(framework), arguments, check)


def in_framework(
    case: str, name: str, app: str, arguments: Sequence[str], check: Check
) -> Benchmark:
    """Return a benchmark in the environment of its framework."""
    venv, args = FRAMEWORKS[name][0], (f"run_{app}.py", *arguments)
    return Benchmark(f"{case}/{name}", venv, args, check, lenient=venv == OLD)


def probe(key: str, venv: str, args: tuple[str, ...], metric: str) -> Benchmark:
    """Return a benchmark that prints its metrics, among them this one."""
    return Benchmark(key, venv, args, mentions(metric), printed_metrics, max_rounds=8)


def startup_benchmarks() -> Iterator[Benchmark]:
    """Yield cold starts of the small apps."""
    yield Benchmark("two-commands/python -c pass", PEERS, ("-c", "pass"), prints(""))
    yield from for_each_framework("two-commands", "two_{}", TWO, json_result("hello bob hello bob"))
    own_code = ("run_seven_own_code.py",)
    yield Benchmark("seven-parameters/own code alone", PEERS, own_code, mentions("bob"))
    yield from for_each_framework("seven-parameters", "seven_{}", SEVEN, json_result(SEVEN_RESULT))
    import_typer = ("-c", "import typer; from seven_own_code import main; main()")
    key = "typer/own code and `import typer` alone"
    yield Benchmark(key, PEERS, import_typer, mentions("bob"))
    args = ("run_seven_tooli_typer.py", *SEVEN)
    yield Benchmark("typer/tooli", PROJECT, args, json_result(SEVEN_RESULT))


def usage_and_help_benchmarks() -> Iterator[Benchmark]:
    """Yield usage errors, compact help and schemas of both small apps."""
    for suffix, app, command in (("", "two", "hello"), ("7", "seven", "convert")):
        wrong = (command, "bob", "--count", "many")
        for name, (_, framework) in FRAMEWORKS.items():
            arguments = (*wrong, "--json") if name == "tooli" else wrong
            check = failed_usage(as_json=name == "tooli")
            yield in_framework(f"usage{suffix}", name, f"{app}_{framework}", arguments, check)
        for flag, case in (("--help-agent", "help"), ("--schema", "schema")):
            key, check = f"{case}{suffix}", mentions("name", "count")
            yield in_framework(key, "tooli", f"{app}_tooli", (command, flag), check)
            yield in_framework(key, "argparse", f"{app}_argparse", (command, "--help"), check)
            # The older tooli prints the help only if the positional arguments are given.
            yield in_framework(key, "older tooli", f"{app}_tooli", (command, "bob", flag), check)
            if case == "help":
                yield in_framework(key, "click", f"{app}_click", (command, "--help"), check)
                yield in_framework(key, "typer", f"{app}_typer", (command, "--help"), check)


def app_size_benchmarks() -> Iterator[Benchmark]:
    """Yield one command of a small and of a large app, and the schemas of a medium-sized app."""
    for name, (venv, framework) in FRAMEWORKS.items():
        for size in (2, 200):
            number = size // 2
            args = (f"run_many_{framework}_{size}.py", f"cmd-{number}", "bob", "--json")
            check = json_result(f"hello {number} bob")
            yield Benchmark(f"many/{name} {size}", venv, args, check)
    check = mentions("cmd_0", "cmd_49", dashes=True)
    yield Benchmark("schemas/tooli", PROJECT, ("run_mixed_tooli.py", "--schema"), check)
    yield Benchmark("schemas/older tooli", OLD, ("run_mixed_old.py",), check)


def python_call_benchmarks() -> Iterator[Benchmark]:
    """Yield `app.call` of the last command of an app, measured inside one process."""
    for name, venv in (("tooli", PROJECT), ("older tooli", OLD)):
        for size in (2, 50):
            args = ("run_call_probe.py", f"many_tooli_{size}", str(size - 1))
            yield probe(f"call/{name} {size}", venv, args, "overhead_us")


def caller_benchmarks() -> Iterator[Benchmark]:
    """Yield starts by an agent, with and without a settings file, and the detection alone."""
    check = json_result("hello bob hello bob")
    for name, folder in (("agent", "agent"), ("agent and settings", "settings")):
        yield Benchmark(
            f"agent/{name}",
            PROJECT,
            ("../run_two_tooli.py", *TWO),
            check,
            folder=folder,
            variables=AGENT_VARIABLES,
        )
    for caller in ("nobody", "tooli-caller", "claude-code"):
        args = ("run_detect_probe.py", caller)
        yield probe(f"detect/{caller}", PROJECT, args, "detect_us")


def guard_benchmarks() -> Iterator[Benchmark]:
    """Yield starts of a command with each guard."""
    for name in GUARDS:
        args = ("run_guarded_tooli.py", name, *TWO)
        is_plan = name == "dry-run"
        check = mentions('"token":') if is_plan else json_result("hello bob hello bob")
        yield Benchmark(f"guarded/{name}", PROJECT, args, check)


def sanitize_benchmarks() -> Iterator[Benchmark]:
    """Yield the sanitizing of texts, measured inside one process."""
    for kind in ("clean", "clean, many scripts", "dirty"):
        yield probe(f"sanitize/{kind}", PROJECT, ("run_sanitize_probe.py", kind), "mb_per_s")


def stream_benchmarks() -> Iterator[Benchmark]:
    """Yield streams of a thousand rows, of a million rows, and of five slow rows."""
    slow = ("rows", "5", "--pause", "0.1", "--jsonl")
    for name, (venv, framework) in FRAMEWORKS.items():
        if name in {"click", "typer"}:
            continue
        app = f"run_rows_{framework}.py"
        for label, count in (("1k", 1_000), ("1M", 1_000_000)):
            args = (app, "rows", str(count), "--jsonl")
            rounds = 2 if count > 1_000 else 10
            key = f"jsonl/{name} {label}"
            yield Benchmark(key, venv, args, row_count(count), max_rounds=rounds, streamed=True)
        key = f"jsonl/{name} 5 slow"
        yield Benchmark(key, venv, (app, *slow), row_count(5), max_rounds=3, streamed=True)


def filter_benchmarks() -> Iterator[Benchmark]:
    """Yield the selection of records and fields from 100,000 records, by tooli and by jq."""
    jq, count, check = find_jq() or "jq", "100000", row_count(25_000)
    options = ("--filter", "even and id >= 50000", "--select", "id, name as title")
    for key, venv, args in (
        ("tooli", PROJECT, ("run_rows_tooli.py", "rows", count, *options, "--jsonl")),
        ("tooli into jq", PROJECT, ("run_rows_jq.py", jq, count, "run_rows_tooli.py")),
        ("argparse into jq", PEERS, ("run_rows_jq.py", jq, count, "run_rows_argparse.py")),
        ("jq alone, on a file", PEERS, ("run_rows_jq.py", jq, count)),
    ):
        yield Benchmark(f"filter/{key}", venv, args, check, max_rounds=6, streamed=True)


def envelope_benchmarks(tokens: TokenCounter) -> Iterator[Benchmark]:
    """Yield the envelope of an empty list."""

    def measure(run: Run) -> Mapping[str, float]:
        return tokens.metrics(run.stdout.strip())

    for name, venv in (("tooli", PROJECT), ("older tooli", OLD)):
        args, check = ("run_empty_tooli.py", "find", "x", "--json"), json_result([])
        yield Benchmark(f"envelope/{name}", venv, args, check, measure, max_rounds=1)


def server_benchmarks() -> Iterator[Benchmark]:
    """Yield the start-up of servers, and calls to them."""
    for name, (venv, args) in MCP_SERVERS.items():
        check = lists_tools(TOOLS, ORDER)
        yield Benchmark(
            f"mcp/{name}", venv, args, check, max_rounds=10, requests=LIST_TOOLS_REQUESTS
        )
        yield Benchmark(
            f"mcpstart/{name}", venv, args, check, max_rounds=10, requests=AGENT_REQUESTS
        )
        yield probe(f"mcpcalls/{name}", venv, ("run_mcp_probe.py", *args), "calls_per_s")
    for name, venv in (("tooli", SERVING), ("FastAPI", SERVERS), ("Litestar", SERVERS)):
        args = ("run_http_probe.py", f"run_http_{name.lower()}.py")
        yield probe(f"http/{name}", venv, args, "calls_per_s")


def build_benchmarks(tokens: TokenCounter) -> list[Benchmark]:
    """Return all benchmarks."""
    return [
        *startup_benchmarks(),
        *usage_and_help_benchmarks(),
        *app_size_benchmarks(),
        *python_call_benchmarks(),
        *caller_benchmarks(),
        *stream_benchmarks(),
        *filter_benchmarks(),
        *guard_benchmarks(),
        *sanitize_benchmarks(),
        *envelope_benchmarks(tokens),
        *document_benchmarks(tokens),
        *output_format_benchmarks(tokens),
        *server_benchmarks(),
        *large_result_benchmarks(),
        *mcp_over_http_benchmarks(),
        *openapi_benchmarks(),
        *real_app_benchmarks(),
    ]
