"""Versions of commands: their order, and the names that contain them."""

from __future__ import annotations

import pytest

from tooli.core.versions import (
    compare_key,
    highest_version,
    is_stable,
    sort_versions,
    split_version,
)
from tooli.errors import DefinitionError


@pytest.mark.parametrize(
    "ordered",
    [
        ["1", "1.1", "1.2", "1.10", "2.0", "v3"],
        ["2.0.0a1", "2.0.0b1", "2.0.0rc1", "2.0.0rc2", "2.0.0rc10", "2.0"],
        ["2.0-alpha", "2.0-alpha.1", "2.0-beta", "2.0.0"],
        ["2024-12-31", "2025-01-01", "2025-02-01"],
    ],
)
def test_versions_are_ordered(ordered: list[str]) -> None:
    assert sort_versions([*reversed(ordered)]) == ordered[::-1]
    assert sorted(ordered, key=compare_key) == ordered


def test_equal_versions_have_equal_keys() -> None:
    assert compare_key("1.0") == compare_key("1") == compare_key("v1.0.0") == compare_key("1+build")


def test_prerelease_is_the_default_only_without_a_stable_version() -> None:
    assert highest_version(["1.0", "2.0rc1"]) == "1.0"
    assert highest_version(["1.0a1", "2.0rc1"]) == "2.0rc1"
    assert is_stable("2026-01-31")
    assert not is_stable("2.0.dev1")


@pytest.mark.parametrize("version", ["", "latest", "1..2", "1.0 ", "x" * 100, "1." * 40 + "0"])
def test_other_text_is_refused(version: str) -> None:
    with pytest.raises(DefinitionError, match="must be numbers such as"):
        compare_key(version)


def test_numbers_and_dates_are_not_mixed() -> None:
    with pytest.raises(DefinitionError, match="must be all numbers, or all dates"):
        sort_versions(["1.0", "2026-01-31"])


@pytest.mark.parametrize(
    ("name", "parts"),
    [("add@1.0", ("add", "1.0")), ("add", ("add", None)), ("@x", ("@x", None)), ("a@", ("a", ""))],
)
def test_split_version(name: str, parts: tuple[str, str | None]) -> None:
    assert split_version(name) == parts
