"""Run the benchmarks: tooli and other libraries, interleaved, in separate environments.

The command line is compared with argparse, click, Typer and the last release of tooli, the servers
with the MCP SDK, FastMCP and FastAPI, and the documents for agents with FastMCP and incur.

    python benchmarks/run.py                  all cases, 25 rounds; writes benchmarks/RESULTS.md
    python benchmarks/run.py --quick          five rounds
    python benchmarks/run.py --only agent     one case (repeatable); writes no file

The environments are created in `.cache/bench/`. Only Python is needed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.app_files import benchmark_lock, write_apps
from harness.cases import CASES, build_benchmarks
from harness.envs import (
    APPS,
    APPS_WITH_TOOLI,
    NODE,
    OLD,
    PEERS,
    PROJECT,
    PROJECT_IN,
    SERVERS,
    SERVING,
    TOKENS,
    Environments,
)
from harness.figures import FIGURES
from harness.measure import Runner, Spawner
from harness.model import Benchmark, Figure, Measurements
from harness.openapi_documents import fetch_documents
from harness.report import Report
from harness.tokens import TokenCounter

RESULTS = Path(__file__).resolve().with_name("RESULTS.md")
VENVS = (PEERS, PROJECT, OLD, TOKENS, SERVERS, SERVING, NODE, APPS, APPS_WITH_TOOLI)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rounds", type=int, default=25, metavar="N", help="rounds (default 25)")
    parser.add_argument("--quick", action="store_true", help="five rounds")
    parser.add_argument(
        "--only", action="append", choices=CASES, help=", ".join(CASES), metavar="CASE"
    )
    parser.add_argument("--no-write", action="store_true", help="do not write RESULTS.md")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    return parser.parse_args(argv)


def select(
    only: Sequence[str] | None, benchmarks: Sequence[Benchmark]
) -> tuple[list[Benchmark], list[Figure]]:
    """Return the benchmarks and figures of the cases, and the benchmarks that the figures need."""
    cases = only or list(CASES)
    figures = [figure for figure in FIGURES if figure.case in cases]
    needed = {term.key for figure in figures for term in figure.terms()}
    selected = [one for one in benchmarks if one.case in cases or one.key in needed]
    return selected, figures


def needed_venvs(benchmarks: Sequence[Benchmark]) -> list[str]:
    """Return the environments of the benchmarks, and that of the token counter."""
    used = {one.venv for one in benchmarks} | {TOKENS}
    used |= {NODE} if any(one.case == "openapi" for one in benchmarks) else set()
    used |= {PROJECT_IN[venv] for venv in used if venv in PROJECT_IN}
    return [venv for venv in VENVS if venv in used]


def show_progress(number: int, count: int) -> None:
    """Print the number of the current round."""
    end = "\n" if number == count or not sys.stderr.isatty() else "\r"
    print(f"round {number} of {count}", end=end, file=sys.stderr, flush=True)


def measure(benchmarks: Sequence[Benchmark], envs: Environments, rounds: int) -> Measurements:
    """Warm up, then run the rounds."""
    with Spawner(write_apps()) as spawner:
        runner = Runner(benchmarks, envs, spawner)
        print(f"warming up {len(benchmarks)} benchmarks …", file=sys.stderr)
        runner.warm_up()
        return runner.run_rounds(rounds, show_progress)


def main(argv: Sequence[str] | None = None) -> int:
    """Prepare the environments, run the benchmarks and print the report."""
    options = parse_arguments(argv)
    envs = Environments()
    tokens = TokenCounter(envs)
    benchmarks, figures = select(options.only, build_benchmarks(tokens))
    rounds = 5 if options.quick else options.rounds
    with benchmark_lock():
        envs.prepare(needed_venvs(benchmarks))
        fetch_documents(benchmarks, envs)
        measurements = measure(benchmarks, envs, rounds)
    report = Report(measurements, benchmarks, figures, envs.versions(), rounds, tokens.exact)
    print(report.details(), report.summary(), report.verdict(), sep="\n\n")
    if not options.only and not options.no_write:
        RESULTS.write_text(report.markdown(), encoding="utf-8")
    passed = all(figure.passed(measurements) for figure in figures if figure.bound is not None)
    return 1 if options.strict and not passed else 0


if __name__ == "__main__":
    sys.exit(main())
