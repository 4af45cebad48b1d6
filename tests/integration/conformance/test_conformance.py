"""The official MCP conformance suite, against an app that declares its fixtures as users do.

A count of successes alone would say little (the suite counts some with nobody listening), nor
would the absence of failures: both are required, and that the server answered before.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from tests.integration.conformance import suite

FIXTURE = pathlib.Path(__file__).with_name("fixture.py")

QUIRKS = {suite.OLD: {"server-sse-priming-event", "server-sse-retry-field"}}
"""Warnings about the suite itself: it asks for these in the words of a version without them."""

pytestmark = pytest.mark.xdist_group("conformance")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the app, served as anybody would serve it."""
    command = [sys.executable, FIXTURE, "mcp", "serve", "--transport", "http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            line = server.stderr.readline()
            found = re.search(r"http://\S+/mcp", line)
            assert found is not None, line + server.stderr.read()
            assert answers(found[0])
            yield found[0]
        finally:
            server.terminate()
            server.wait(20)


def answers(url: str) -> bool:
    """Whether somebody speaks HTTP there: even a refusal is an answer."""
    try:
        urllib.request.urlopen(url, timeout=120)
    except urllib.error.HTTPError:
        return True
    return True


@pytest.mark.parametrize(
    ("version", "flags", "least"),
    [
        (suite.OLD, (), 44),
        (suite.NEW, ("--spec-version", "2025-11-25"), 84),
        (suite.NEW, ("--spec-version", "2026-07-28"), 152),
    ],
    ids=["0.1.16", "2025-11-25", "2026-07-28"],
)
def test_conformance(
    url: str, tmp_path: pathlib.Path, version: str, flags: tuple[str, ...], least: int
) -> None:
    report = suite.run(version, url, tmp_path, *flags)
    assert report.failed == 0, str(report)
    assert report.passed >= least, str(report)
    assert {check["id"] for check in report.wrong} <= QUIRKS.get(version, set()), str(report)
