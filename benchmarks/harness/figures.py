"""The figures that must come out: the contract's table, row by row."""

from __future__ import annotations

from collections.abc import Iterator

from harness.answers import answer_figures
from harness.cases import GUARDS
from harness.model import AgainstRivals, Figure, Term
from harness.reading import OURS, THEIRS

ASKED = {
    "usage": "usage error as JSON",
    "help": "`--help-agent`",
    "schema": "`--schema` of plain types",
}
APPS = {"": "two-command app", "7": "seven-parameter app"}
PEER_NAMES = {"FastMCP": "FastMCP 4.1", "SDK": "the SDK 2.3", "FastAPI": "FastAPI"}


def against_argparse(case: str, label: str, bound: float) -> Figure:
    """CPU against argparse doing the same."""
    mine, theirs = Term(f"{case}/tooli"), Term(f"{case}/argparse")
    return Figure(case, label, mine, theirs, bound, against="argparse")


def faster_than_typer(case: str, label: str, bound: float) -> Figure:
    """How many times faster than Typer."""
    typer, mine = Term(f"{case}/typer"), Term(f"{case}/tooli")
    return Figure(case, label, typer, mine, bound, at_least=True, against="faster than Typer 0.29")


def starting() -> Iterator[Figure]:
    """Cold starts."""
    for case, label, slowest, speedup in (
        ("two-commands", "two-command app, `cmd … --json`", 0.60, 10),
        ("seven-parameters", "seven-parameter app, `--json`", 1.0, 5.5),
    ):
        yield against_argparse(case, label, slowest)
        yield faster_than_typer(case, label, speedup)
    for suffix, app in APPS.items():
        for case, what in ASKED.items():
            yield against_argparse(f"{case}{suffix}", f"{what}, {app}", 1.1)
    mine, theirs = Term("typer/tooli"), Term("seven-parameters/typer")
    yield Figure("typer", "the author imports typer", mine, theirs, 0.45, against="Typer 0.29")
    mine, theirs = Term("two-commands/tooli", "rss_mb"), Term("two-commands/argparse", "rss_mb")
    yield Figure("memory", "peak memory, two-command app", mine, theirs, 1.2, against="argparse")


def growing() -> Iterator[Figure]:
    """Large apps against small ones."""
    for name in ("tooli", "argparse", "click", "typer", "older tooli"):
        large, small = Term(f"many/{name} 200"), Term(f"many/{name} 2")
        bound = 1.3 if name == "tooli" else None
        yield Figure("many", f"200 commands against 2, {name}", large, small, bound)
    label, mine = "schemas of 50 commands, as a process", Term("schemas/tooli")
    yield Figure("schemas", label, mine, bound=0.2, unit="s", scale=0.001)
    theirs = Term("schemas/older tooli")
    yield Figure("schemas", label, mine, theirs, 0.5, against="older tooli")


def calling() -> Iterator[Figure]:
    """Overhead of `app.call` compared with a direct call."""
    for name, bound in (("tooli", 5), ("older tooli", None)):
        for size in (2, 50):
            label = f"`app.call` over the direct call, {size} commands, {name}"
            cost = Term(f"call/{name} {size}", "over_us")
            yield Figure("call", label, cost, bound=bound, unit="µs", stat="min")
        large, small = Term(f"call/{name} 50", "call_us"), Term(f"call/{name} 2", "call_us")
        label = f"`app.call`, 50 commands against 2, {name}"
        yield Figure("call", label, large, small, bound and 1.2, stat="min")


def looking() -> Iterator[Figure]:
    """The cost of agents, settings files and detection."""
    for name, label, bound in (
        ("agent", "two-command app, an agent calls", 0.60),
        ("agent and settings", "two-command app, an agent calls, with a `.tooli.yaml`", None),
    ):
        mine, theirs = Term(f"agent/{name}"), Term("two-commands/argparse")
        yield Figure("agent", label, mine, theirs, bound, against="argparse")
    for who in ("nobody", "tooli-caller", "claude-code"):
        cost = Term(f"detect/{who}", "look_us")
        yield Figure("detect", f"detection: {who}", cost, bound=1000, unit="µs", stat="min")


def guarding() -> Iterator[Figure]:
    """The cost that each guard adds to a start."""
    for name, label in GUARDS.items():
        mine, plain = Term(f"guarded/{name}"), Term("two-commands/tooli")
        yield Figure("guarded", label, mine, plain, against="the plain command")


def sanitizing() -> Iterator[Figure]:
    """How much goes through the sanitiser."""
    for kind, bound in (("clean", 50), ("clean, many scripts", 50), ("dirty", None)):
        speed = Term(f"sanitize/{kind}", "mb_per_s")
        yield Figure(
            "sanitize", f"sanitiser: {kind} text", speed, None, bound, at_least=True, unit="MB/s"
        )


def streaming() -> Iterator[Figure]:
    """Constant memory, and rows that leave as they are made."""
    million, thousand = Term("jsonl/tooli 1M", "rss_mb"), Term("jsonl/tooli 1k", "rss_mb")
    yield Figure("jsonl", "peak memory, 1,000,000 rows against 1,000", million, thousand, 1.1)
    for name, label, bound in (
        ("tooli 1M", "first of 1,000,000 rows, of the whole time", 0.1),
        ("tooli 5 slow", "first of 5 rows 0.1 s apart, of the whole time", 0.5),
    ):
        first, whole = Term(f"jsonl/{name}", "first_ms"), Term(f"jsonl/{name}", "wall_ms")
        yield Figure("jsonl", label, first, whole, bound)
    mine, theirs = Term("jsonl/tooli 1M", "rows_per_s"), Term("jsonl/argparse 1M", "rows_per_s")
    yield Figure("jsonl", "rows per second, against argparse and a loop", mine, theirs)


def filtering() -> Iterator[Figure]:
    """Filtering at the source against filtering what it wrote."""
    mine, label = Term("filter/tooli"), "filter and select of 100,000 records"
    for name in ("tooli into jq", "argparse into jq", "jq alone, of a file"):
        yield Figure("filter", f"{label}, against {name}", mine, Term(f"filter/{name}"))


def wrapping() -> Iterator[Figure]:
    """What an agent reads besides the result."""
    for name, bound in (("tooli", 30), ("older tooli", None)):
        label = f"envelope around an empty result, {name}"
        cost = Term(f"envelope/{name}", "tokens")
        yield Figure("envelope", label, cost, bound=bound, unit="tokens")


def reading() -> Iterator[Figure]:
    """What an agent reads before its first call: all that it needs, and no more."""
    rivals = tuple(f"tokens/{name}" for name in THEIRS)
    for name in OURS:
        key = f"tokens/{name}"
        what = name.removeprefix("tooli ")
        label, against = f"tokens of {what}", "the shortest peer that says as much"
        mine = Term(key, "tokens")
        yield AgainstRivals("tokens", label, mine, bound=1.0, against=against, rivals=rivals)
        # Over MCP it is the protocol that says how to call, how errors look, how to get more.
        bound = None if what == "tools/list" else 0
        label, left = f"questions that {what} leaves open", Term(key, "open")
        yield Figure("tokens", label, left, bound=bound, unit="questions")


def serving() -> Iterator[Figure]:
    """Servers: soon there, cheap to call."""
    label = "start of a stdio server to `tools/list`"
    for name, bound in (("FastMCP", 0.05), ("SDK", 0.1)):
        mine, theirs = Term("mcp/tooli"), Term(f"mcp/{name}")
        yield Figure("mcp", label, mine, theirs, bound, against=PEER_NAMES[name])
        mine, theirs = Term("mcp/tooli", "rss_mb"), Term(f"mcp/{name}", "rss_mb")
        yield Figure("mcp", f"peak memory by then, against {PEER_NAMES[name]}", mine, theirs)
    # A call's time stands below the line, so what comes out is the ratio of calls per second.
    for case, name, bound in (
        ("mcpcalls", "FastMCP", 5),
        ("mcpcalls", "SDK", None),
        ("http", "FastAPI", 2),
    ):
        transport = "stdio" if case == "mcpcalls" else "HTTP"
        against = f"as many as {PEER_NAMES[name]}"
        for metric, what in (("wall_us", "calls per second"), ("cpu_us", "calls per CPU second")):
            label = f"{what} over {transport}" + ("" if bound else f", against {PEER_NAMES[name]}")
            theirs, mine = Term(f"{case}/{name}", metric), Term(f"{case}/tooli", metric)
            yield Figure(case, label, theirs, mine, bound, at_least=True, against=against)


FIGURES: tuple[Figure, ...] = (
    *starting(),
    *growing(),
    *calling(),
    *looking(),
    *guarding(),
    *sanitizing(),
    *streaming(),
    *filtering(),
    *wrapping(),
    *reading(),
    *answer_figures(),
    *serving(),
)
