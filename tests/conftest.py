"""Shared by all tests: a state directory of their own, and settings of the test tools."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from tests import child_coverage

settings.register_profile(
    "busy-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy-machine")  # examples take longer while other processes run

_passed = count(1)


def pytest_collection_finish() -> None:
    """Keep the thousands of collected tests out of every later look of the collector's."""
    gc.collect()
    gc.freeze()


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """One dot for a hundred tests: what went wrong is not to drown in what went well."""
    if report.when == "call" and report.passed:
        return "passed", "" if next(_passed) % 100 else ".", "PASSED"
    return None


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keys of cursors and results that were too large stay out of the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def measured_children() -> child_coverage.ChildCoverage | None:
    """Coverage of forked processes, if coverage is measured."""
    return child_coverage.start()


@pytest.fixture(autouse=True)
def collect_child_coverage(
    measured_children: child_coverage.ChildCoverage | None,
) -> Iterator[None]:
    """Add what the forked processes of a test executed to the measured coverage."""
    yield
    if measured_children is not None:
        measured_children.collect()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a Postgres server; its tests stand in the group "postgres", to share it."""
    from tests.integration.postgres import running

    with running() as address:
        yield address
