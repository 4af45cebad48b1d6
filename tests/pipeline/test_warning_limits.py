"""The number of warnings is limited: the first of each kind, then a count of the others."""

from __future__ import annotations

from tooli.pipeline.warning_limits import MAX_WARNINGS, limit_warnings


def test_number_of_kinds_is_limited() -> None:
    found = limit_warnings([f"number{i} is odd" for i in range(1000)])
    assert len(found) == MAX_WARNINGS + 1
    assert found[-1] == f"{1000 - MAX_WARNINGS} more warnings of other kinds"
    repeated = limit_warnings([f"number{i // 9} is odd" for i in range(9000)])
    assert len(repeated) <= 2 * MAX_WARNINGS + 1


def test_an_empty_warning_is_a_kind() -> None:
    assert limit_warnings(["", " ", "", "", ""]) == [
        *["", " ", ""],
        "2 more warnings that begin with ''",
    ]
