"""The tokens of one result of forty records, in each output format of each library.

The records are the same for all libraries. The formats are compared in pairs: those with an
envelope, and those without. incur prints an envelope only with `--full-output`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.checks import document
from harness.envs import NODE, OLD, PROJECT
from harness.model import Benchmark, Figure, Run, Term
from harness.tokens import TokenCounter

COUNT = 40
SUBJECTS = ("Cannot sign in", "Invoice is wrong, twice", "App crashes on start", "Slow: search")
HOLDERS = ("ada", "grace", "linus", None)
RECORDS: list[dict[str, Any]] = [
    {
        "ticket": 4100 + 7 * i,
        "subject": f"{SUBJECTS[i % 4]} ({i})",
        "holder": HOLDERS[i % 3 if i % 5 else 3],
        "hours": round(0.25 * i + 0.1, 2),
        "urgent": i % 6 == 0,
        "opened": f"2026-0{1 + i % 9}-1{i % 10}T0{i % 10}:30:00Z",
    }
    for i in range(COUNT)
]
HEAD = "from typing import Optional\n\nfrom typing_extensions import TypedDict\n"
TYPE = """
class Ticket(TypedDict):
    ticket: int
    subject: str
    holder: Optional[str]
    hours: float
    urgent: bool
    opened: str
"""
FIELDS = (
    "ticket: z.number(), subject: z.string(), holder: z.string().nullable(), "
    "hours: z.number(), urgent: z.boolean(), opened: z.string()"
)


def answer_apps() -> Iterator[tuple[str, str]]:
    """Yield the apps that return the records: module name and source."""
    yield (
        "answer_tooli",
        f"{HEAD}\nfrom tooli import Tooli\n\napp = Tooli(name='desk', version='1.0.0')\n{TYPE}\n\n"
        f"@app.command()\ndef tickets() -> list[Ticket]:\n"
        f'    """List the tickets."""\n    return {RECORDS!r}\n\n\n'
        "@app.command()\ndef count() -> int:\n"
        f'    """Count the tickets."""\n    return {COUNT}\n\n\n'
        "def main() -> None:\n    app()\n",
    )
    source = (
        "import { Cli, z } from 'incur'\n"
        "Cli.create('desk', { description: 'Tickets', version: '1.0.0' })\n"
        "  .command('tickets', { description: 'List the tickets.',\n"
        f"    output: z.array(z.object({{ {FIELDS} }})),\n"
        f"    run() {{ return {json.dumps(RECORDS)} }} }})\n  .serve()\n"
    )
    start = "\n\ndef main() -> None:\n    start(SOURCE)\n"
    yield "answer_incur", f"from incur_launcher import start\n\nSOURCE = {source!r}\n{start}"


# ------------------------------------------------------------------ formats


def stripped(text: str) -> str:
    """Return the output without the final newline."""
    return text.strip()


def indented(text: str) -> str:
    """Return a JSON document with indentation."""
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)


Format = tuple[str, tuple[str, ...], Callable[[str], str]]
TOOLI_APP, INCUR_APP = "run_answer_tooli.py", "run_answer_incur.py"
FORMATS: Mapping[str, Format] = {
    "tooli --json, indented": (PROJECT, (TOOLI_APP, "tickets", "--json"), indented),
    "tooli --json": (PROJECT, (TOOLI_APP, "tickets", "--json"), stripped),
    "tooli -o toon": (PROJECT, (TOOLI_APP, "tickets", "-o", "toon"), stripped),
    "tooli --jsonl": (PROJECT, (TOOLI_APP, "tickets", "--jsonl"), stripped),
    "tooli -o csv": (PROJECT, (TOOLI_APP, "tickets", "-o", "csv"), stripped),
    "tooli -o md": (PROJECT, (TOOLI_APP, "tickets", "-o", "md"), stripped),
    "incur --full-output": (NODE, (INCUR_APP, "tickets", "--full-output"), stripped),
    "incur": (NODE, (INCUR_APP, "tickets"), stripped),
    "incur --format json": (NODE, (INCUR_APP, "tickets", "--format", "json"), stripped),
    "incur --format jsonl": (NODE, (INCUR_APP, "tickets", "--format", "jsonl"), stripped),
    "incur --format md": (NODE, (INCUR_APP, "tickets", "--format", "md"), stripped),
    "older tooli --json": (OLD, (TOOLI_APP, "tickets", "--json"), stripped),
}


def contains_all_records(run: Run) -> str | None:
    """Return the first value of the records that an output does not contain, or None."""
    if run.code:
        return f"exit {run.code}"
    for record in RECORDS:
        for value in (record["subject"], record["opened"], f"{record['hours']:g}"):
            if str(value) not in run.stdout:
                return f"{value!r} is not in its output"
    return None


def has_exact_records(run: Run) -> str | None:
    """Return what is wrong if the records in JSON or CSV differ from the original, or None."""
    if run.code:
        return f"exit {run.code}"
    envelope = document(run.stdout)
    if envelope:
        return None if envelope.get("result") == RECORDS else "other records"
    rows = list(csv.DictReader(io.StringIO(run.stdout, newline="")))
    same = [row["subject"] for row in rows] == [record["subject"] for record in RECORDS]
    return None if same else "other records"


def output_format_benchmarks(tokens: TokenCounter) -> Iterator[Benchmark]:
    """Yield a benchmark for each format."""
    for name, (venv, args, read) in FORMATS.items():

        def measure(run: Run, read: Callable[[str], str] = read) -> Mapping[str, float]:
            return tokens.metrics(read(run.stdout))

        check = (
            has_exact_records
            if name.startswith("tooli") and args[-1] in ("--json", "csv")
            else contains_all_records
        )
        yield Benchmark(f"answer/{name}", venv, args, check, measure, max_rounds=1)


def output_format_figures() -> Iterator[Figure]:
    """Yield the tokens of each format, compared with another format or library."""
    pairs = (
        ("tooli -o toon", "tooli --json", 0.8),
        ("tooli -o csv", "tooli --json", 0.7),
        ("tooli --json", "tooli --json, indented", None),
        ("tooli -o toon", "incur --full-output", 1.02),
        ("tooli -o csv", "incur", 1.0),
        ("tooli -o md", "incur --format md", 1.05),
        ("tooli --json", "older tooli --json", 1.0),
    )
    for name, other, bound in pairs:
        label = f"tokens of 40 records, {name}"
        tokens, other_tokens = Term(f"answer/{name}", "tokens"), Term(f"answer/{other}", "tokens")
        yield Figure("answer", label, tokens, other_tokens, bound, against=other)
