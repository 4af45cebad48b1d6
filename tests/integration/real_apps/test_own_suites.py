"""Tests that the authors of real applications wrote pass with Tooli in Typer's place.

Only the tests of applications whose source distribution contains tests that run offline are here.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tests.integration.real_apps.environment import (
    OLDEST_PYTHON,
    fetch_source,
    prepare,
    replacement_variables,
)

pytestmark = pytest.mark.skipif(
    sys.version_info < OLDEST_PYTHON, reason="some of the applications need Python 3.11"
)


@pytest.mark.parametrize(
    ("package", "version", "tests", "least"),
    [
        ("toml-cli", "0.8.2", "tests", 6),
        ("gitlabber", "2.1.2", "tests/test_cli.py", 3),
        ("weasel", "1.0.1", "weasel/tests/cli", 25),
    ],
)
def test_the_same_tests_pass(
    package: str, version: str, tests: str, least: int, tmp_path: Path
) -> None:
    """A test that passes with Typer passes with Tooli."""
    source = fetch_source(package, version)
    with_typer = passed_tests(source, tests, tmp_path / "typer", {})
    with_tooli = passed_tests(source, tests, tmp_path / "tooli", replacement_variables())
    assert len(with_typer) >= least
    assert not with_typer - with_tooli


def passed_tests(source: Path, tests: str, home: Path, variables: dict[str, str]) -> set[str]:
    """Run tests of a source distribution; return the names of those that pass."""
    home.mkdir()
    report = home / "report.xml"
    python = prepare() / "python"
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--junitxml={report}"]
    options += ["-c", "pyproject.toml"]  # not the settings of this repository
    subprocess.run(
        [str(python), "-m", "pytest", *options, tests],
        cwd=source,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    cases = ElementTree.parse(report).iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}" for case in cases if not len(case)}
