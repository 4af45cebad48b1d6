"""Measure tooli beside its peers, in one interleaved run.

As a command line: argparse, click, Typer and the older tooli. As a server: the MCP SDK, FastMCP
and FastAPI. As something to read for agents: FastMCP, incur and the older tooli.

    python benchmarks/run.py                  all cases, 25 rounds; writes benchmarks/RESULTS.md
    python benchmarks/run.py --quick          five rounds
    python benchmarks/run.py --only agent     one case (repeatable); writes nothing

Needs nothing but Python: it makes its own environments under `.cache/bench/`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cases import CASES, build_contestants
from harness.envs import NODE, OLD, PEERS, PROJECT, SERVERS, SERVING, TOKENS, Environments
from harness.figures import FIGURES
from harness.measure import Race, Spawner
from harness.model import Contestant, Figure, Ledger
from harness.report import Report
from harness.tokens import TokenCounter
from harness.workshop import one_at_a_time, open_workshop

RESULTS = Path(__file__).resolve().with_name("RESULTS.md")
VENVS = (PEERS, PROJECT, OLD, TOKENS, SERVERS, SERVING, NODE)


def read_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rounds", type=int, default=25, metavar="N", help="rounds (default 25)")
    parser.add_argument("--quick", action="store_true", help="five rounds")
    parser.add_argument(
        "--only", action="append", choices=CASES, help=", ".join(CASES), metavar="CASE"
    )
    parser.add_argument("--no-write", action="store_true", help="leave RESULTS.md alone")
    parser.add_argument("--strict", action="store_true", help="exit 1 unless every figure holds")
    return parser.parse_args(argv)


def choose(
    only: Sequence[str] | None, everybody: Sequence[Contestant]
) -> tuple[list[Contestant], list[Figure]]:
    """Return the requested figures, and the contestants that their cases need."""
    cases = only or list(CASES)
    figures = [figure for figure in FIGURES if figure.case in cases]
    needed = {term.key for figure in figures for term in figure.terms()}
    return [one for one in everybody if one.case in cases or one.key in needed], figures


def tell(number: int, count: int) -> None:
    """Show how far the race is."""
    end = "\n" if number == count or not sys.stderr.isatty() else "\r"
    print(f"round {number} of {count}", end=end, file=sys.stderr, flush=True)


def measure(contestants: Sequence[Contestant], envs: Environments, rounds: int) -> Ledger:
    """Warm up, then run the rounds."""
    with Spawner(open_workshop()) as spawner:
        race = Race(contestants, envs, spawner)
        print(f"warming up {len(contestants)} contestants …", file=sys.stderr)
        race.warm_up()
        return race.rounds(rounds, tell)


def main(argv: Sequence[str] | None = None) -> int:
    """Prepare, measure, report."""
    options = read_arguments(argv)
    envs = Environments()
    tokens = TokenCounter(envs)
    contestants, figures = choose(options.only, build_contestants(tokens))
    rounds = 5 if options.quick else options.rounds
    with one_at_a_time():
        envs.prepare(VENVS)
        ledger = measure(contestants, envs, rounds)
    report = Report(ledger, contestants, figures, envs.versions(), rounds, tokens.exact)
    print(report.details(), report.summary(), report.verdict(), sep="\n\n")
    if not options.only and not options.no_write:
        RESULTS.write_text(report.markdown(), encoding="utf-8")
    held = all(figure.passed(ledger) for figure in figures if figure.bound is not None)
    return 1 if options.strict and not held else 0


if __name__ == "__main__":
    sys.exit(main())
