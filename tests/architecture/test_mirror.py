"""The unit tests mirror the source tree: `src/tooli/a/b.py` is tested by `tests/a/test_b.py`.

Code of a package's `__init__.py` is tested by `tests/a/test_a.py`.
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "tooli"

SUITES = {"architecture", "integration", "lanes", "parity", "security", "snapshots"}
"""Folders of tests that cover the product, not one module."""

CROSS_MODULE_TESTS = {
    "cli/test_cli_settings.py": "caller profiles and settings, as the command line applies them",
    "detect/test_dumps.py": "recorded environments of real agents",
    "execution/monitor/test_monitor_limits.py": "the audit hook and its runners, without a hook",
    "execution/sandbox/test_bwrap_evasions.py": "attempts to leave the sandbox, in bubblewrap",
    "execution/sandbox/test_isolation.py": "isolated commands on every interface",
    "execution/sandbox/test_isolation_evasions.py": "attempts to leave the sandbox",
    "execution/sandbox/test_isolation_refused.py": "isolation on systems that do not support it",
    "execution/test_evasions.py": "attempts to deceive the monitor",
    "execution/test_timeouts_by_interface.py": "timeouts through Python, HTTP and MCP",
    "serving/test_new_surface.py": "a new surface, written as ARCHITECTURE.md says",
    "test_child_coverage.py": "the coverage of forked processes, a part of the tests",
    "test_docs.py": "the examples in docs/",
    "test_examples.py": "the apps in examples/",
}
"""Tests of several modules together, and what they test."""


def find_modules() -> dict[str, Path]:
    """Return every module with code, by the path of its test file."""
    found: dict[str, Path] = {}
    for path in SOURCE.rglob("*.py"):
        is_package = path.name == "__init__.py"
        if is_package and (path.parent == SOURCE or not has_code(path)):
            continue
        name = path.parent.name if is_package else path.stem
        test = path.parent.relative_to(SOURCE) / f"test_{name.removeprefix('_')}.py"
        found[test.as_posix()] = path
    return found


def has_code(path: Path) -> bool:
    """True if a file defines a function or a class."""
    return any(
        line.startswith(("def ", "class ", "async def "))
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def find_unit_tests() -> set[str]:
    """Return the unit-test files, relative to the tests folder."""
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    return {path.as_posix() for path in files if path.parts[0] not in SUITES}


def test_every_module_has_a_test_file() -> None:
    missing = sorted(find_modules().keys() - find_unit_tests())
    assert not missing, f"write {', '.join(missing)}"


def test_every_test_file_names_a_module() -> None:
    unmatched = sorted(find_unit_tests() - find_modules().keys() - CROSS_MODULE_TESTS.keys())
    assert not unmatched, f"no module for {', '.join(unmatched)}"


def test_every_listed_test_file_exists() -> None:
    gone = sorted(CROSS_MODULE_TESTS.keys() - find_unit_tests())
    assert not gone, f"remove {', '.join(gone)} from CROSS_MODULE_TESTS"
