"""The cases: who runs what, and which figures must come out of it.

A further case is one entry in CASES, its contestants in a function of `build_contestants`
and its figures in `figures.py`; a contestant that measures something else than a process
prints its numbers as JSON and names them with `harvest=printed`, and a server has a `dialogue`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.answers import answering
from harness.checks import (
    failed_usage,
    json_result,
    lists_tools,
    mentions,
    printed,
    prints,
    row_count,
)
from harness.debian import find_jq
from harness.envs import OLD, PEERS, PROJECT, SERVERS, SERVING
from harness.model import Check, Contestant, Run
from harness.reading import OPENING, reading
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
    "typer": "Seven-parameter app whose author wrote `import typer` and `typer.Option`",
    "many": "One command of an app with 2 or 200, `--json`",
    "memory": "Peak memory of the two-command app",
    "agent": "The two-command app for an agent, without and with a `.tooli.yaml`",
    "guarded": "The two-command app with a guard on its command",
    "detect": "Detection of the caller from its environment",
    "sanitize": "Sanitize a text of four megabytes",
    "call": "Overhead of `app.call` compared with a direct call, by number of commands",
    "schemas": "Schemas of all fifty commands of an app, in a process",
    "jsonl": "`--jsonl` from a generator into a pipe",
    "filter": "`--filter` and `--select` over 100,000 records, beside jq",
    "envelope": "The JSON envelope around an empty list",
    "tokens": "Documents for agents about an app of twenty commands: tokens, and what they contain",
    "answer": "One result of forty records, in every output format",
    "mcp": "MCP over stdio, twenty typed tools, from the start to the answer to `tools/list`",
    "mcpcalls": "MCP over stdio, `tools/call` of one validated tool, one after the other",
    "http": "HTTP, one validated tool on uvicorn, eight connections",
}

GUARDS = {
    "destructive": "a destructive command with `--yes`, with two entries in the audit log",
    "dry-run": "a dry run, with a token for its plan",
    "capabilities": "declared capabilities, monitored",
    "timeout": "a deadline: a process of its own",
    "isolation": "isolation: behind Landlock and seccomp",
    "key": "an idempotency key, new (SQLite, on this disk)",
    "replay": "an idempotency key, replayed",
}
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
KINDS: Mapping[str, tuple[str, str]] = {
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


def field(case: str, app: str, words: Sequence[str], check: Check) -> Iterator[Contestant]:
    """The same command line for every kind of app."""
    for name, (venv, kind) in KINDS.items():
        args = (f"run_{app.format(kind)}.py", *words)
        yield Contestant(f"{case}/{name}", venv, args, check, lenient=venv == OLD)


def one(case: str, name: str, app: str, words: Sequence[str], check: Check) -> Contestant:
    """One contestant, in the environment of its kind."""
    venv = KINDS[name][0]
    return Contestant(f"{case}/{name}", venv, (f"run_{app}.py", *words), check, lenient=venv == OLD)


def starting() -> Iterator[Contestant]:
    """Cold starts of the small apps."""
    yield Contestant("two-commands/python -c pass", PEERS, ("-c", "pass"), prints(""))
    yield from field("two-commands", "two_{}", TWO, json_result("hello bob hello bob"))
    own = ("run_seven_own_code.py",)
    yield Contestant("seven-parameters/own code alone", PEERS, own, mentions("bob"))
    yield from field("seven-parameters", "seven_{}", SEVEN, json_result(SEVEN_RESULT))
    floor = ("-c", "import typer; from seven_own_code import main; main()")
    yield Contestant("typer/own code and `import typer` alone", PEERS, floor, mentions("bob"))
    by_typer = ("run_seven_tooli_typer.py", *SEVEN)
    yield Contestant("typer/tooli", PROJECT, by_typer, json_result(SEVEN_RESULT))


def asking() -> Iterator[Contestant]:
    """Usage errors, compact help and schema, of both small apps."""
    for suffix, app, command in (("", "two", "hello"), ("7", "seven", "convert")):
        wrong = (command, "bob", "--count", "many")
        for name, (_, kind) in KINDS.items():
            words = (*wrong, "--json") if name == "tooli" else wrong
            check = failed_usage(as_json=name == "tooli")
            yield one(f"usage{suffix}", name, f"{app}_{kind}", words, check)
        for flag, case in (("--help-agent", "help"), ("--schema", "schema")):
            key, about = f"{case}{suffix}", mentions("name", "count")
            yield one(key, "tooli", f"{app}_tooli", (command, flag), about)
            yield one(key, "argparse", f"{app}_argparse", (command, "--help"), about)
            # The older tooli asks for the positionals before it says what they are.
            yield one(key, "older tooli", f"{app}_tooli", (command, "bob", flag), about)
            if case == "help":
                yield one(key, "click", f"{app}_click", (command, "--help"), about)
                yield one(key, "typer", f"{app}_typer", (command, "--help"), about)


def growing() -> Iterator[Contestant]:
    """The same command in a small and in a large app; the schemas of a middle-sized one."""
    for name, (venv, kind) in KINDS.items():
        for size in (2, 200):
            command = size // 2
            words = (f"cmd-{command}", "bob", "--json")
            args = (f"run_many_{kind}_{size}.py", *words)
            check = json_result(f"hello {command} bob")
            yield Contestant(f"many/{name} {size}", venv, args, check)
    every = mentions("cmd_0", "cmd_49", dashes=True)
    yield Contestant("schemas/tooli", PROJECT, ("run_mixed_tooli.py", "--schema"), every)
    yield Contestant("schemas/older tooli", OLD, ("run_mixed_old.py",), every)


def calling() -> Iterator[Contestant]:
    """`app.call` of the last command, timed inside one process."""
    for name, venv in (("tooli", PROJECT), ("older tooli", OLD)):
        for size in (2, 50):
            args = ("run_call_probe.py", f"many_tooli_{size}", str(size - 1))
            key = f"call/{name} {size}"
            yield Contestant(key, venv, args, mentions("over_us"), harvest=printed, most_rounds=8)


def looking() -> Iterator[Contestant]:
    """What surroundings cost: as part of a start, and by themselves."""
    for name, folder in (("agent", "."), ("agent and settings", "settings")):
        around, answer = ("run_around_tooli.py", folder, *TWO), json_result("hello bob hello bob")
        yield Contestant(f"agent/{name}", PROJECT, around, answer)
    for who in ("nobody", "tooli-caller", "claude-code"):
        args, key = ("run_detect_probe.py", who), f"detect/{who}"
        yield Contestant(key, PROJECT, args, mentions("look_us"), harvest=printed, most_rounds=8)


def guarding() -> Iterator[Contestant]:
    """What each guard adds to a start."""
    for name in GUARDS:
        args = ("run_guarded_tooli.py", name, *TWO)
        plans = name == "dry-run"
        answer = mentions('"token":') if plans else json_result("hello bob hello bob")
        yield Contestant(f"guarded/{name}", PROJECT, args, answer)


def sanitizing() -> Iterator[Contestant]:
    """What it costs to look for what must not get out, and to take it out."""
    for kind in ("clean", "clean, many scripts", "dirty"):
        args, key = ("run_sanitize_probe.py", kind), f"sanitize/{kind}"
        yield Contestant(key, PROJECT, args, mentions("mb_per_s"), harvest=printed, most_rounds=8)


def streaming() -> Iterator[Contestant]:
    """A thousand rows, a million rows, and five slow ones."""
    slow = ("rows", "5", "--pause", "0.1", "--jsonl")
    for name, (venv, kind) in KINDS.items():
        if name in {"click", "typer"}:
            continue
        app = f"run_rows_{kind}.py"
        for label, count in (("1k", 1_000), ("1M", 1_000_000)):
            args = (app, "rows", str(count), "--jsonl")
            rounds = 2 if count > 1_000 else 10
            key = f"jsonl/{name} {label}"
            yield Contestant(key, venv, args, row_count(count), most_rounds=rounds, streamed=True)
        key = f"jsonl/{name} 5 slow"
        yield Contestant(key, venv, (app, *slow), row_count(5), most_rounds=3, streamed=True)


def filtering() -> Iterator[Contestant]:
    """A quarter of 100,000 records, two fields of each: by tooli itself, and by jq behind it."""
    jq, count, kept = find_jq() or "jq", "100000", row_count(25_000)
    asked = ("--filter", "even and id >= 50000", "--select", "id, name as title")
    for key, venv, args in (
        ("tooli", PROJECT, ("run_rows_tooli.py", "rows", count, *asked, "--jsonl")),
        ("tooli into jq", PROJECT, ("run_rows_jq.py", jq, count, "run_rows_tooli.py")),
        ("argparse into jq", PEERS, ("run_rows_jq.py", jq, count, "run_rows_argparse.py")),
        ("jq alone, of a file", PEERS, ("run_rows_jq.py", jq, count)),
    ):
        yield Contestant(f"filter/{key}", venv, args, kept, most_rounds=6, streamed=True)


def wrapping(tokens: TokenCounter) -> Iterator[Contestant]:
    """The envelope around nothing."""

    def measure(run: Run) -> Mapping[str, float]:
        text = run.stdout.strip()
        return {"tokens": float(tokens.count(text)), "bytes": float(len(text.encode()))}

    for name, venv in (("tooli", PROJECT), ("older tooli", OLD)):
        args, nothing = ("run_empty_tooli.py", "find", "x", "--json"), json_result([])
        yield Contestant(f"envelope/{name}", venv, args, nothing, measure, most_rounds=1)


def serving() -> Iterator[Contestant]:
    """Servers: how soon they answer, and how many calls they take."""
    numbers = mentions("calls_per_s")
    for name, (venv, args) in MCP_SERVERS.items():
        listed = lists_tools(TOOLS, ORDER)
        yield Contestant(f"mcp/{name}", venv, args, listed, most_rounds=10, dialogue=OPENING)
        probe, key = ("run_mcp_probe.py", *args), f"mcpcalls/{name}"
        yield Contestant(key, venv, probe, numbers, harvest=printed, most_rounds=8)
    for name, venv in (("tooli", SERVING), ("FastAPI", SERVERS)):
        probe, key = ("run_http_probe.py", f"run_http_{name.lower()}.py"), f"http/{name}"
        yield Contestant(key, venv, probe, numbers, harvest=printed, most_rounds=8)


def build_contestants(tokens: TokenCounter) -> list[Contestant]:
    """Everybody who takes part."""
    own = (starting(), asking(), growing(), calling(), looking(), streaming(), filtering())
    read = (wrapping(tokens), reading(tokens), answering(tokens))
    groups = (*own, guarding(), sanitizing(), *read, serving())
    return [contestant for group in groups for contestant in group]
