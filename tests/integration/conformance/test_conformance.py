"""The official MCP conformance suite against `conformance_app`.

The suite counts some checks as passed even if no server answers. Therefore the tests require that
the server answers, that no check fails, and a minimum number of passed checks.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from tests.integration.conformance import suite

APP = pathlib.Path(__file__).with_name("conformance_app.py")

EXPECTED_WARNINGS = {suite.STABLE: {"server-sse-priming-event", "server-sse-retry-field"}}
"""Checks that this suite runs with a protocol version that does not have the feature."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve the app with its own command; return the URL of its MCP endpoint."""
    command = [sys.executable, APP, "mcp", "serve", "--transport", "http", "--port", "0"]
    command.append("--no-access-log")  # nobody reads the log, and a full pipe stops the server
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            line = server.stderr.readline()
            found = re.search(r"http://\S+/mcp", line)
            assert found is not None, line + server.stderr.read()
            assert is_http_server(found[0])
            yield found[0]
        finally:
            server.terminate()
            server.wait(20)


def is_http_server(url: str) -> bool:
    """True if a server answers; an error status is an answer, too."""
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(url, timeout=120).close()
    return True


@pytest.mark.parametrize(
    ("version", "flags", "min_passed"),
    [
        (suite.STABLE, (), 44),
        (suite.PRERELEASE, ("--spec-version", "2025-11-25"), 84),
        (suite.PRERELEASE, ("--spec-version", "2026-07-28"), 152),
    ],
    ids=["0.1.16", "2025-11-25", "2026-07-28"],
)
def test_conformance_suite_passes(
    url: str, tmp_path: pathlib.Path, version: str, flags: tuple[str, ...], min_passed: int
) -> None:
    report = suite.run(version, url, tmp_path, *flags)
    assert report.failed == 0, str(report)
    assert report.passed >= min_passed, str(report)
    assert {check["id"] for check in report.problems} <= EXPECTED_WARNINGS.get(version, set()), str(
        report
    )
