"""One answer of forty records, in every form that a library has for it, and its tokens.

The records are the same for everybody. incur gives them without an envelope unless it is asked,
as our tables do; so each is beside the one of its kind.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.checks import document
from harness.envs import NODE, OLD, PROJECT
from harness.model import Contestant, Figure, Run, Term
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
    """The apps that give the answer: module name and source."""
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
    yield "answer_incur", f"from incur_room import start\n\nSOURCE = {source!r}\n{start}"


# ------------------------------------------------------------------ the forms


def as_it_is(text: str) -> str:
    """What was printed, and nothing else."""
    return text.strip()


def indented(text: str) -> str:
    """The same document, as JSON for people has it."""
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)


Form = tuple[str, tuple[str, ...], Callable[[str], str]]
OURS, THEIRS, OLDER = "run_answer_tooli.py", "run_answer_incur.py", "run_answer_tooli.py"
FORMS: Mapping[str, Form] = {
    "tooli --json, indented": (PROJECT, (OURS, "tickets", "--json"), indented),
    "tooli --json": (PROJECT, (OURS, "tickets", "--json"), as_it_is),
    "tooli -o toon": (PROJECT, (OURS, "tickets", "-o", "toon"), as_it_is),
    "tooli --jsonl": (PROJECT, (OURS, "tickets", "--jsonl"), as_it_is),
    "tooli -o csv": (PROJECT, (OURS, "tickets", "-o", "csv"), as_it_is),
    "tooli -o md": (PROJECT, (OURS, "tickets", "-o", "md"), as_it_is),
    "incur --full-output": (NODE, (THEIRS, "tickets", "--full-output"), as_it_is),
    "incur": (NODE, (THEIRS, "tickets"), as_it_is),
    "incur --format json": (NODE, (THEIRS, "tickets", "--format", "json"), as_it_is),
    "incur --format jsonl": (NODE, (THEIRS, "tickets", "--format", "jsonl"), as_it_is),
    "incur --format md": (NODE, (THEIRS, "tickets", "--format", "md"), as_it_is),
    "older tooli --json": (OLD, (OLDER, "tickets", "--json"), as_it_is),
}


def holds_all(run: Run) -> str | None:
    """What is missing of the records in an answer, in whatever form it is."""
    if run.code:
        return f"exit {run.code}"
    for record in RECORDS:
        for value in (record["subject"], record["opened"], f"{record['hours']:g}"):
            if str(value) not in run.stdout:
                return f"{value!r} is not in its output"
    return None


def is_exact(run: Run) -> str | None:
    """Whether the forms that Python can read say the very same."""
    if run.code:
        return f"exit {run.code}"
    envelope = document(run.stdout)
    if envelope:
        return None if envelope.get("result") == RECORDS else "other records"
    rows = list(csv.DictReader(io.StringIO(run.stdout, newline="")))
    same = [row["subject"] for row in rows] == [record["subject"] for record in RECORDS]
    return None if same else "other records"


def answering(tokens: TokenCounter) -> Iterator[Contestant]:
    """The answer in each form, counted."""
    for name, (venv, args, read) in FORMS.items():

        def measure(run: Run, read: Callable[[str], str] = read) -> Mapping[str, float]:
            text = read(run.stdout)
            return {"tokens": float(tokens.count(text)), "bytes": float(len(text.encode()))}

        check = (
            is_exact if name.startswith("tooli") and args[-1] in ("--json", "csv") else holds_all
        )
        yield Contestant(f"answer/{name}", venv, args, check, measure, most_rounds=1)


def answer_figures() -> Iterator[Figure]:
    """What a form saves, and how it stands beside the peers' form of the same kind."""
    pairs = (
        ("tooli -o toon", "tooli --json", 0.8),
        ("tooli -o csv", "tooli --json", 0.7),
        ("tooli --json", "tooli --json, indented", None),
        ("tooli -o toon", "incur --full-output", 1.02),
        ("tooli -o csv", "incur", 1.0),
        ("tooli -o md", "incur --format md", 1.05),
        ("tooli --json", "older tooli --json", 1.0),
    )
    for mine, theirs, bound in pairs:
        label = f"tokens of 40 records, {mine}"
        top, bottom = Term(f"answer/{mine}", "tokens"), Term(f"answer/{theirs}", "tokens")
        yield Figure("answer", label, top, bottom, bound, against=theirs)
