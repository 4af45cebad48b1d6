"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from tests import child_coverage, file_scheduling, session_home

# Hypothesis measures wall time. On a busy machine an example takes many times longer, so a
# deadline, or a limit for generating data, fails tests whose code is correct. The examples are the
# same in each run, as in Hypothesis' own profile for CI.
# With `TOOLI_FUZZ_SEED`, others are drawn.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize="TOOLI_FUZZ_SEED" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
# Hypothesis also draws constants of all modules that are loaded, and these depend on other tests.
providers._get_local_constants = lambda: providers._local_constants

_passed_tests = count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Use a temporary home directory. Modules may read the variables when they are imported."""
    home = session_home.replace_home()
    config.add_cleanup(lambda: session_home.remove_home(home))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> file_scheduling.FileScheduling:
    """Run each file in one process."""
    return file_scheduling.FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start slow files first."""
    items.sort(key=lambda item: file_scheduling.priority(item.nodeid))


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which would visit them each time."""
    gc.collect()
    gc.freeze()


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print one dot for a hundred passed tests, so that failures stand out."""
    if report.when == "call" and report.passed:
        return "passed", "" if next(_passed_tests) % 100 else ".", "PASSED"
    return None


@pytest.fixture(autouse=True)
def forget_keys() -> Iterator[None]:
    """Forget the keys of a test. Every sandboxed process searches its memory for all of them."""
    from tooli.core.held_keys import held_keys

    yield
    held_keys.clear()


@pytest.fixture(autouse=True)
def reset_access_log() -> Iterator[None]:
    """Reset the level that a server with an access log sets in this process."""
    yield
    logging.getLogger("tooli.access").setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def remove_approvals() -> Iterator[None]:
    """Remove the approval requests of a test from the home directory of the session."""
    yield
    session_home.remove_approvals()


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
    """The address of a Postgres server, one for each process that runs tests."""
    from tests.integration.postgres import run_server

    with run_server() as address:
        yield address
