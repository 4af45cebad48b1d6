"""Start-up of real Typer applications, with Typer and with Tooli in its place.

The applications and their versions are those of tests/integration/real_apps.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks import mentions
from harness.envs import APPS, APPS_WITH_TOOLI, HOME, ROOT
from harness.model import Benchmark, Figure, Term

REPLACEMENT = ROOT / "tests" / "lanes" / "typer_suite" / "hooks" / "replacement"
"""A folder for PYTHONPATH: its sitecustomize.py replaces `typer.Typer` when typer is imported."""
TYPER_VARIABLES = (f"PYTHONPATH={REPLACEMENT}",)
TOOLI_VARIABLES = (*TYPER_VARIABLES, "TYPER_SUITE_CLASS=tooli:Tooli", "TOOLI_OUTPUT=text")
MAX_ROUNDS = 20
"""Rounds of which the fastest counts. The programs differ by less than the noise of one round."""
COMMAND_LINES = {
    "compose-farm": (("--version",), "compose-farm"),
    "cruft": (("check", "--help"), "usage"),
    "dbt-coverage": (("compare", "--help"), "usage"),
    "frictionless": (("--version",), "5."),
    "gitlabber": (("--help",), "usage"),
    "peblar": (("identify", "--help"), "usage"),
    "pls": (("version",), "version"),
    "pycln": (("--version",), "2."),
    "pyodide": (("--version",), "version"),
    "pyproject2conda": (("--version",), "version"),
    "rpzip": (("--version",), "rpzip"),
    "rstcheck": (("--version",), "rstcheck"),
    "strawberry": (("upgrade", "--help"), "usage"),
    "toml": (("get", "--help"), "usage"),
    "typer": (("--version",), "version"),
    "weasel": (("document", "--help"), "usage"),
}
"""One command line of each program, and a word of its output."""


def real_app_benchmarks() -> Iterator[Benchmark]:
    """Yield the same command line of each program with Typer and with Tooli."""
    for name, (arguments, word) in COMMAND_LINES.items():
        args, check = (str(HOME / APPS / "bin" / name), *arguments), mentions(word)
        for library, venv, variables in (
            ("Typer", APPS, TYPER_VARIABLES),
            ("Tooli", APPS_WITH_TOOLI, TOOLI_VARIABLES),
        ):
            yield Benchmark(
                f"apps/{name} with {library}",
                venv,
                args,
                check,
                max_rounds=MAX_ROUNDS,
                variables=variables,
            )


def real_app_figures() -> Iterator[Figure]:
    """Yield the least CPU time of each program as a ratio to Typer."""
    for name, (arguments, _) in COMMAND_LINES.items():
        label = f"`{name} {' '.join(arguments)}`"
        tooli, peer = Term(f"apps/{name} with Tooli"), Term(f"apps/{name} with Typer")
        yield Figure("apps", label, tooli, peer, 1.0, stat="min", against="Typer 0.29")
