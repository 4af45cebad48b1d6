"""TooliResult and TooliError: the outcome of a call as values."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest

from tooli import (
    NotFoundError,
    SecretInput,
    Suggestion,
    Tooli,
    TooliError,
    TooliResult,
    ToolRuntimeError,
)
from tooli.errors import Interrupted, StateError
from tooli.pipeline.prepared_call import to_tooli_error

META = {"tool": "app.find", "version": "1.0", "duration_ms": 3}
GONE = NotFoundError(
    "gone",
    field="path",
    suggestion=Suggestion("retry_later", "Wait."),
    details={"path": "a"},
)


class TestResult:
    def test_unwrap_returns_the_result(self) -> None:
        assert TooliResult(True, 5).unwrap() == 5
        assert TooliResult(True).unwrap() is None

    def test_unwrap_raises_the_same_error(self) -> None:
        with pytest.raises(NotFoundError) as caught:
            TooliResult(False, error=to_tooli_error(GONE)).unwrap()
        assert caught.value is GONE

    def test_result_is_frozen(self) -> None:
        with pytest.raises(AttributeError):
            TooliResult(True, 5).result = 6

    def test_result_class_is_generic(self) -> None:
        assert TooliResult[int] is TooliResult
        assert isinstance(TooliResult(True, 5), TooliResult[int])

    def test_results_are_equal_by_value(self) -> None:
        assert TooliResult(True, 5, meta=META) == TooliResult(True, 5, None, dict(META))

    def test_to_dict_returns_the_envelope(self) -> None:
        assert TooliResult(True, {1, 2}, meta=META).to_dict() == {
            "ok": True,
            "result": [1, 2],
            "meta": META,
        }
        assert TooliResult(True, None, meta=META).to_dict() == {"ok": True, "meta": META}

    def test_to_dict_of_a_failure_has_the_error(self) -> None:
        found = TooliResult(False, error=to_tooli_error(GONE), meta=META).to_dict()
        assert list(found) == ["ok", "error", "meta"]
        assert found["error"] == GONE.to_dict()

    def test_model_dump_json_equals_to_dict(self) -> None:
        result = TooliResult(True, [1], meta=META)
        assert result.model_dump_json() == (
            '{"ok":true,"result":[1],"meta":{"tool":"app.find","version":"1.0","duration_ms":3}}'
        )
        assert json.loads(result.model_dump_json()) == result.to_dict()

    @pytest.mark.parametrize(
        ("meta", "warnings"),
        [
            (
                {**META, "warnings": ["old"], "dry_run": True},
                ["old", "NaN or infinity was written as null"],
            ),
            (META, ["NaN or infinity was written as null"]),
            ({}, ["NaN or infinity was written as null"]),
        ],
        ids=["more", "first", "bare"],
    )
    def test_replaced_values_are_warnings(self, meta, warnings) -> None:
        found = TooliResult(True, [math.nan], meta=meta).to_dict()["meta"]
        assert found["warnings"] == warnings
        order = ["tool", "version", "duration_ms", "warnings", "dry_run"]
        assert list(found) == [name for name in order if name in found]
        assert {k: v for k, v in found.items() if k != "warnings"} == {
            k: v for k, v in meta.items() if k != "warnings"
        }

    def test_pickled_result_keeps_its_error(self) -> None:
        result = TooliResult(False, error=to_tooli_error(GONE), meta=META)
        copy = pickle.loads(pickle.dumps(result))
        assert copy.to_dict() == result.to_dict()
        with pytest.raises(NotFoundError, match="gone"):
            copy.unwrap()


class TestError:
    def test_fields_are_those_of_the_envelope(self) -> None:
        error = to_tooli_error(GONE)
        assert error.to_dict() == GONE.to_dict()
        assert list(error.to_dict()) == list(GONE.to_dict())
        assert error.suggestion == {
            "action": "retry_later",
            "fix": "Wait.",
            "applicability": "maybe_incorrect",
        }

    def test_repr_does_not_show_the_source(self) -> None:
        app = Tooli("app")

        @app.command()
        def fetch(token: SecretInput[str]) -> str:
            """Fetch."""
            raise ConnectionError(f"GET ?key={token.reveal()}")

        found = app.call("fetch", token="hunter22")
        assert found.error is not None
        assert "hunter22" in str(found.error.source)
        assert "hunter22" not in repr(found)
        assert "message='GET ?key=***'" in repr(found)

    def test_empty_fields_are_omitted(self) -> None:
        error = to_tooli_error(StateError("no"))
        assert error.to_dict() == {
            "code": "E3000",
            "category": "state",
            "message": "no",
            "is_retryable": False,
        }

    @pytest.mark.parametrize(
        ("code", "category", "kind"),
        [
            ("E3010", "state", NotFoundError),
            ("E3999", "state", StateError),
            ("E4130", "runtime", Interrupted),
            ("E4999", "runtime", ToolRuntimeError),
        ],
    )
    def test_to_exception_without_a_source_uses_code_and_category(
        self, code, category, kind
    ) -> None:
        error = TooliError(
            code,
            category,
            "x",
            suggestion={"action": "abort", "fix": "y"},
            field="f",
            details={"a": 1},
        )
        exception = error.to_exception()
        assert type(exception) is kind
        assert exception.to_dict()["suggestion"]["action"] == "abort"
        assert (exception.code, exception.field, exception.details) == (code, "f", {"a": 1})

    def test_to_exception_works_for_a_class_with_its_own_init(self) -> None:
        class Rejected(StateError):
            code = "E3992"

            def __init__(self, order: int) -> None:
                super().__init__(f"order {order} was rejected", code="E3992")

        exception = TooliError("E3992", "state", "order 7 was rejected").to_exception()
        assert type(exception) is Rejected
        assert exception.message == "order 7 was rejected"

    def test_unknown_codes_and_actions_are_kept(self) -> None:
        error = TooliError("X1", "weather", "rain", suggestion={"action": "umbrella"})
        assert error.to_dict()["suggestion"] == {"action": "umbrella"}


@pytest.mark.parametrize(("value", "items"), [({3, 1, 2}, [1, 2, 3]), ((1, 2), [1, 2])])
def test_stream_of_a_returned_collection_sends_its_items(value: Any, items: list[int]) -> None:
    app = Tooli("collections")

    @app.command()
    def numbers() -> Any:
        return value

    assert list(app.stream("numbers")) == items
