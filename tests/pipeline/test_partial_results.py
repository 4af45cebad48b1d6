"""Failures of single items as errors, and the outcome of a `Partial`."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.stages.stage_calls import make_call

from tooli import NotFoundError, Partial, PartialFailure, TemporaryError
from tooli.core.call import Failed, Ok
from tooli.pipeline.failure import MULTI_STATUS, as_tool_error, is_unexpected
from tooli.pipeline.partial_results import MAX_FAILURES, partial_outcome, read_failures


def errors_of(*entries: object) -> list[Any]:
    return [failure.error for failure in read_failures(Partial([], entries)).failed]


@pytest.mark.parametrize(
    ("entry", "item", "code", "message"),
    [
        ("too large", None, "E4000", "too large"),
        (("a", "too large"), "a", "E4000", "too large"),
        (NotFoundError("gone"), None, "E3010", "gone"),
        ((7, OSError("no disk")), 7, "E5000", "OSError: no disk"),
        ({"item": 7, "message": "gone", "code": "E3010"}, 7, "E3010", "gone"),
        (("a", {"message": "gone"}), "a", "E4000", "gone"),
        ({}, None, "E4000", "It failed."),
        (None, None, "E4000", "It failed."),
        (("a", None), "a", "E4000", "It failed."),
    ],
)
def test_entry(entry: object, item: object, code: str, message: str) -> None:
    (failure,) = read_failures(Partial([], [entry])).failed
    assert (failure.item, failure.error.code, failure.error.message) == (item, code, message)


def test_dict_of_failures() -> None:
    failed = read_failures(Partial([], {"a": "no", "b": TemporaryError("busy")})).failed
    assert [(failure.item, failure.error.code) for failure in failed] == [
        ("a", "E4000"),
        ("b", "E4075"),
    ]


def test_failures_are_read_once() -> None:
    once = read_failures(Partial([1], [("a", "no")]))
    assert read_failures(once).failed == once.failed
    assert repr(once).startswith("Partial([1], failed=[ItemFailure(")


def test_invalid_fields_are_repaired() -> None:
    (error,) = errors_of({"message": "no", "code": "not a code"})
    assert error.code == "E4000"
    assert error.warnings


def test_copy_for_another_process() -> None:
    partial = read_failures(Partial([1], [("a", ValueError("x")), ("b", NotFoundError("y"))]))
    copied = pickle.loads(pickle.dumps(partial))
    assert copied.items == [1]
    assert [failure.item for failure in copied.failed] == ["a", "b"]
    assert [is_unexpected(failure.error) for failure in copied.failed] == [True, False]
    assert [failure.error.message for failure in copied.failed] == ["ValueError: x", "y"]


def test_without_failures_it_is_a_success() -> None:
    outcome = partial_outcome(Partial([1, 2]), make_call())
    assert isinstance(outcome, Ok)
    assert outcome.value == [1, 2]


@pytest.mark.parametrize(
    ("failed", "retryable", "is_retryable"),
    [
        ([TemporaryError("a"), TemporaryError("b")], 2, True),
        ([TemporaryError("a"), NotFoundError("b")], 1, False),
        ([NotFoundError("b")], 0, False),
    ],
)
def test_summary(failed: list[Exception], retryable: int, is_retryable: bool) -> None:
    outcome = partial_outcome(read_failures(Partial([1], failed)), make_call())
    assert isinstance(outcome, Failed)
    error = outcome.error
    assert isinstance(error, PartialFailure)
    assert error.details is not None
    count = len(failed)
    summary = {"total": count + 1, "succeeded": 1, "failed": count, "retryable": retryable}
    assert error.details["summary"] == summary
    assert error.is_retryable is is_retryable
    assert outcome.value == [1]


def test_many_failures() -> None:
    failed = read_failures(Partial([], ["no"] * (MAX_FAILURES + 1)))
    outcome = partial_outcome(failed, make_call())
    assert isinstance(outcome, Failed)
    assert outcome.error.details is not None
    assert len(outcome.error.details["errors"]) == MAX_FAILURES
    assert outcome.error.details["summary"]["failed"] == MAX_FAILURES + 1


def fetch(names: list[str], others: list[str], limit: int = 1) -> None:
    """Fetch."""


@pytest.mark.parametrize(
    ("failed", "suggested"),
    [
        (["b"], {"names": ["b"], "others": ["x"], "limit": 2}),
        (["c"], None),  # no value of a parameter
        (["x"], None),  # nothing is left out
        ([None], None),
    ],
)
def test_suggested_call(failed: list[Any], suggested: dict[str, Any] | None) -> None:
    call = make_call(fetch, {"names": ["a", "b"], "others": ["x"], "limit": 2})
    partial = read_failures(Partial(["a"], [(item, "no") for item in failed]))
    outcome = partial_outcome(partial, call)
    assert isinstance(outcome, Failed)
    suggestion = outcome.error.suggestion
    assert (suggestion and suggestion.target.arguments) == suggested  # type: ignore[attr-defined]


def test_status_of_a_partial_failure_is_valid() -> None:
    error = PartialFailure("no")
    assert as_tool_error(error).http_status == MULTI_STATUS
    error.exit_code = 0
    assert as_tool_error(error).http_status == MULTI_STATUS
    assert error.exit_code == 70
