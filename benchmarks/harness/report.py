"""The report: a table of all figures, then one table per case."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.cases import CASES
from harness.model import Benchmark, Figure, Measurements

NOT_AVAILABLE = "n/a"
PASS, FAIL, NO_TARGET = "✓", "✗", ""
PROCESS_COLUMNS = ("cpu_ms", "wall_ms", "rss_mb")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "detect": ("detect_us",),
    "call": ("overhead_us", "call_us", "direct_us"),
    "sanitize": ("mb_per_s",),
    "jsonl": ("first_ms", "wall_ms", "rss_mb", "rows_per_s"),
    "envelope": ("tokens", "bytes"),
    "answer": ("tokens", "bytes"),
    "tokens": ("tokens", "answered", "unanswered", "bytes"),
    "mcpcalls": ("calls_per_s", "wall_us", "cpu_us"),
    "http": ("calls_per_s", "wall_us", "cpu_us", "client_us", "busy"),
}
MORE_IS_BETTER = ("rows_per_s", "mb_per_s", "calls_per_s", "busy", "answered")
HEADINGS = {
    "cpu_ms": "CPU ms",
    "wall_ms": "wall ms",
    "rss_mb": "peak MB",
    "detect_us": "µs",
    "overhead_us": "overhead µs",
    "call_us": "`app.call` µs",
    "direct_us": "direct µs",
    "first_ms": "first row ms",
    "rows_per_s": "rows/s",
    "mb_per_s": "MB/s",
    "calls_per_s": "calls/s",
    "wall_us": "µs per call",
    "cpu_us": "server's CPU µs per call",
    "client_us": "client's CPU µs per call",
    "busy": "CPU use of the server",
    "tokens": "tokens",
    "answered": "questions answered",
    "unanswered": "unanswered",
    "bytes": "bytes",
}
METHOD = """\
Every benchmark is a process: `python app.py …`, with compiled bytecode and a clean environment.
Each app is a module that a two-line script imports, like an installed console script. All
benchmarks run once per round, in a shuffled order, so that noise affects all of them. CPU is user
and system time, memory is the peak RSS; both come from `wait4`. Ratios are ratios of medians. For
figures marked "best", the minimum is compared with the target. The benchmarks of one case use the
same environment, except for the older tooli, the last release before the rewrite, which has its
own.

A stdio server receives `initialize` and `tools/list`, and is killed after its answer. The time
until then is measured. Calls are measured for at least one second after a warm-up, with a small
client that checks every answer: over stdio one call after the other, over HTTP on eight keep-alive
connections. The HTTP server (uvicorn, h11, one process) has a CPU core of its own. "Calls per
second" uses the wall clock. "Calls per CPU second" uses the CPU time of the server and does not
depend on other processes.

A document for agents is measured as it is printed. The document of an MCP server is its list of
tools. All documents describe the same twenty commands; the apps are generated for each library
from the same data. Each document is checked for the answers to the same questions
(`harness/facts.py`). For each command: its name, purpose, parameters, their types, choices and
defaults, which of them are required, the result, and whether it is read-only or destructive. In
general: how to call a command, how an error looks, how to get more information. The length is
compared with the shortest document of another library that answers at least as many questions, or,
if there is none, with those that answer the most."""


@dataclass(frozen=True)
class Report:
    """The results of a run, as Markdown."""

    measurements: Measurements
    benchmarks: Sequence[Benchmark]
    figures: Sequence[Figure]
    versions: Mapping[str, str]
    rounds: int
    exact_tokens: bool

    def summary(self) -> str:
        """Return the table of figures."""
        rows = [figure_row(figure, self.measurements) for figure in self.figures]
        return table(("case", "figure", "target", "value", "by minimum", ""), rows)

    def verdict(self) -> str:
        """Return how many targets are reached."""
        results = [
            figure.passed(self.measurements) for figure in self.figures if figure.bound is not None
        ]
        passed, missed, unknown = results.count(True), results.count(False), results.count(None)
        return f"Targets: {passed} reached, {missed} missed, {unknown} not measured."

    def details(self) -> str:
        """Return one table per case, then the benchmarks that were not measured, and remarks."""
        parts = [section(case, self.benchmarks, self.measurements) for case in CASES]
        return "\n\n".join([*filter(None, parts), *self._notes()])

    def markdown(self) -> str:
        """Return the text of RESULTS.md."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        tokens = (
            "counted with o200k" if self.exact_tokens else "estimated: no tokenizer is available"
        )
        setup = f"{machine()}; {self.rounds} rounds. Measured: {versions}. Tokens are {tokens}."
        head = ("# Benchmarks", "Written by `make bench`; do not edit.", setup, METHOD)
        body = ("## Figures", self.verdict(), self.summary(), "## Details", self.details())
        return "\n\n".join([*head, *body]) + "\n"

    def _notes(self) -> list[str]:
        notes: list[str] = []
        lists = {"Not measured": self.measurements.missing, "Remarks": self.measurements.remarks}
        for title, reasons in lists.items():
            if reasons:
                lines = [f"- {key}: {reason}" for key, reason in reasons.items()]
                notes.append(f"### {title}\n\n" + "\n".join(lines))
        return notes


def machine() -> str:
    """Return the number of cores, the operating system and the Python version."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {python}"


def figure_row(figure: Figure, measurements: Measurements) -> tuple[str, ...]:
    """Return a row of the table of figures."""
    passed = figure.passed(measurements)
    mark = (
        NO_TARGET
        if figure.bound is None
        else {True: PASS, False: FAIL, None: NOT_AVAILABLE}[passed]
    )
    value, best = (
        figure.value(measurements),
        format_number(figure.value(measurements, "min"), figure.unit),
    )
    reached = format_number(value, figure.unit) + (
        " (best)" if value and figure.stat == "min" else ""
    )
    return (figure.case, figure.label, bound_text(figure), reached, best, mark)


def bound_text(figure: Figure) -> str:
    """Return the target of a figure as text."""
    if figure.bound is None:
        return "none"
    sign = "≥" if figure.at_least else "≤"
    bound = (
        f"{figure.bound:.2f}" if figure.bound < 2 and figure.unit == "×" else f"{figure.bound:g}"
    )
    return f"{sign} {bound} {figure.unit} {figure.against}".rstrip()


def format_number(value: float | None, unit: str = "") -> str:
    """Return a number with about three significant digits."""
    if value is None:
        return NOT_AVAILABLE
    counted = value >= 10 or unit in ("tokens", "questions")
    whole = value >= 1000 or (counted and value.is_integer())
    digits = 0 if whole else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def section(case: str, benchmarks: Sequence[Benchmark], measurements: Measurements) -> str | None:
    """Return the table of a case: median / best of each metric, and the ratio to argparse."""
    members = [one for one in benchmarks if one.case == case]
    if not members:
        return None
    columns = COLUMNS.get(case, PROCESS_COLUMNS)
    argparse_cpu = measurements.stat(f"{case}/argparse", "cpu_ms")
    heading = ["", *(HEADINGS[column] for column in columns)]
    rows = [detail_row(one.key, one.name, columns, measurements) for one in members]
    if argparse_cpu:
        heading.append("× argparse")
        for row, one in zip(rows, members, strict=True):
            cpu = measurements.stat(one.key, "cpu_ms")
            row.append(format_number(cpu / argparse_cpu if cpu else None))
    return f"### {CASES[case]}\n\n" + table(heading, rows)


def detail_row(
    key: str, name: str, columns: Iterable[str], measurements: Measurements
) -> list[str]:
    """Return the row of a benchmark: median / best of each metric."""
    cells = [name]
    for column in columns:
        middle, values = measurements.stat(key, column), measurements.values(key, column)
        if middle is None:
            cells.append(NOT_AVAILABLE)
            continue
        best = max(values) if column in MORE_IS_BETTER else min(values)
        single = len(set(values)) == 1
        cells.append(
            format_number(middle) if single else f"{format_number(middle)} / {format_number(best)}"
        )
    return cells


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns."""
    lines = [heading, *rows]
    widths = [max(len(row[index]) for row in lines) for index in range(len(heading))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in lines]
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(row)} |" for row in padded)
