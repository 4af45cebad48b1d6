"""The tables: figures first, then everything that was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.cases import CASES
from harness.model import Contestant, Figure, Ledger

NOT_AVAILABLE = "n/a"
PASS, FAIL, SHOWN = "✓", "✗", ""
PROCESS_COLUMNS = ("cpu_ms", "wall_ms", "rss_mb")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "call": ("over_us", "call_us", "direct_us"),
    "sanitize": ("mb_per_s",),
    "jsonl": ("first_ms", "wall_ms", "rss_mb", "rows_per_s"),
    "envelope": ("tokens", "bytes"),
    "answer": ("tokens", "bytes"),
    "tokens": ("tokens", "facts", "open", "bytes"),
    "mcpcalls": ("calls_per_s", "wall_us", "cpu_us"),
    "http": ("calls_per_s", "wall_us", "cpu_us", "client_us", "busy"),
}
MORE_IS_BETTER = ("rows_per_s", "mb_per_s", "calls_per_s", "busy", "facts")
HEADINGS = {
    "cpu_ms": "CPU ms",
    "wall_ms": "wall ms",
    "rss_mb": "peak MB",
    "over_us": "over direct µs",
    "call_us": "`app.call` µs",
    "direct_us": "direct µs",
    "first_ms": "first row ms",
    "rows_per_s": "rows/s",
    "mb_per_s": "MB/s",
    "calls_per_s": "calls/s",
    "wall_us": "µs per call",
    "cpu_us": "server's CPU µs per call",
    "client_us": "client's CPU µs per call",
    "busy": "server busy",
    "tokens": "tokens",
    "facts": "questions answered",
    "open": "left open",
    "bytes": "bytes",
}
METHOD = """\
Every contestant is a process started plainly, `python app.py …`, with bytecode present and a
clean environment; an app is a module that a two-line starter imports, as an installed console
script does. All contestants run once per round, in a shuffled order, so that a noisy moment hits
everybody. CPU is user + system time and memory is peak RSS, both from `wait4`. Ratios are of
medians; where "best" is named, the minimum was judged. Contestants of one case share one
environment, but for the older tooli, which needs its own.

A stdio server is told `initialize`, then `tools/list`, and killed once it has answered: what it
cost until then is counted. Calls are counted by a light client for a second or more, after a
warm-up, every answer looked at: over stdio one call after the other; over HTTP on eight kept
connections, the server (uvicorn, h11, one process) on a core of its own. Calls per second are by
the clock; calls per CPU second are by the server's own CPU and do not know who else was there.

What an agent reads is counted as it is printed, of a server as its list of tools is sent. All
texts are about the same twenty commands, written for each library from the same data, and all are
asked the same questions (`harness/facts.py`): of each command its name, purpose, parameters, their
types, choices and defaults, which are required, what comes back, and whether it only reads or
destroys; and how to call, how errors look, how to get more. A text is held against the shortest
one of a peer that answers at least as many, or else against those that answer the most."""


@dataclass(frozen=True)
class Report:
    """A finished race, ready to be written."""

    ledger: Ledger
    contestants: Sequence[Contestant]
    figures: Sequence[Figure]
    versions: Mapping[str, str]
    rounds: int
    exact_tokens: bool

    def summary(self) -> str:
        """The table of figures."""
        rows = [figure_row(figure, self.ledger) for figure in self.figures]
        return table(("case", "figure", "must reach", "reached", "by minima", ""), rows)

    def verdict(self) -> str:
        """How many figures hold."""
        judged = [figure.passed(self.ledger) for figure in self.figures if figure.bound is not None]
        held, missed, unknown = judged.count(True), judged.count(False), judged.count(None)
        return f"{held} of {len(judged)} figures hold, {missed} do not, {unknown} are unmeasured."

    def details(self) -> str:
        """Return one table per case, then the missing contestants and why."""
        parts = [section(case, self.contestants, self.ledger) for case in CASES]
        return "\n\n".join([*filter(None, parts), *self._notes()])

    def markdown(self) -> str:
        """The whole page."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        tokens = "counted as o200k" if self.exact_tokens else "estimated, for want of a tokenizer"
        facts = f"{machine()}; {self.rounds} rounds. Measured: {versions}. Tokens are {tokens}."
        head = ("# Benchmarks", "Written by `make bench`; do not edit.", facts, METHOD)
        body = ("## Figures", self.verdict(), self.summary(), "## Details", self.details())
        return "\n\n".join([*head, *body]) + "\n"

    def _notes(self) -> list[str]:
        notes: list[str] = []
        chapters = {"Not measured": self.ledger.missing, "Remarks": self.ledger.remarks}
        for title, found in chapters.items():
            if found:
                lines = [f"- {key}: {reason}" for key, reason in found.items()]
                notes.append(f"### {title}\n\n" + "\n".join(lines))
        return notes


def machine() -> str:
    """The machine in general words."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {python}"


def figure_row(figure: Figure, ledger: Ledger) -> tuple[str, ...]:
    """One line of the table of figures."""
    passed = figure.passed(ledger)
    mark = SHOWN if figure.bound is None else {True: PASS, False: FAIL, None: NOT_AVAILABLE}[passed]
    value, best = figure.value(ledger), shown(figure.value(ledger, "min"), figure.unit)
    reached = shown(value, figure.unit) + (" (best)" if value and figure.stat == "min" else "")
    return (figure.case, figure.label, bound_text(figure), reached, best, mark)


def bound_text(figure: Figure) -> str:
    """A bound in words."""
    if figure.bound is None:
        return "(shown only)"
    sign = "≥" if figure.at_least else "≤"
    bound = (
        f"{figure.bound:.2f}" if figure.bound < 2 and figure.unit == "×" else f"{figure.bound:g}"
    )
    return f"{sign} {bound} {figure.unit} {figure.against}".rstrip()


def shown(value: float | None, unit: str = "") -> str:
    """A number with as many digits as it deserves."""
    if value is None:
        return NOT_AVAILABLE
    counted = value >= 10 or unit in ("tokens", "questions")
    whole = value >= 1000 or (counted and value.is_integer())
    digits = 0 if whole else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def section(case: str, contestants: Sequence[Contestant], ledger: Ledger) -> str | None:
    """The table of one case: median / minimum of each metric, and the ratio to argparse."""
    members = [one for one in contestants if one.case == case]
    if not members:
        return None
    columns = COLUMNS.get(case, PROCESS_COLUMNS)
    yardstick = ledger.stat(f"{case}/argparse", "cpu_ms")
    heading = ["", *(HEADINGS[column] for column in columns)]
    rows = [detail_row(one.key, one.name, columns, ledger) for one in members]
    if yardstick:
        heading.append("× argparse")
        for row, one in zip(rows, members, strict=True):
            cpu = ledger.stat(one.key, "cpu_ms")
            row.append(shown(cpu / yardstick if cpu else None))
    return f"### {CASES[case]}\n\n" + table(heading, rows)


def detail_row(key: str, name: str, columns: Iterable[str], ledger: Ledger) -> list[str]:
    """One contestant: median / best of each column."""
    cells = [name]
    for column in columns:
        middle, values = ledger.stat(key, column), ledger.values(key, column)
        if middle is None:
            cells.append(NOT_AVAILABLE)
            continue
        best = max(values) if column in MORE_IS_BETTER else min(values)
        single = len(set(values)) == 1
        cells.append(shown(middle) if single else f"{shown(middle)} / {shown(best)}")
    return cells


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    everything = [heading, *rows]
    widths = [max(len(row[index]) for row in everything) for index in range(len(heading))]
    padded = [
        [cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in everything
    ]
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(row)} |" for row in padded)
