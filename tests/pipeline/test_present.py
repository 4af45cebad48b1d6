"""Presented output: envelopes, meta and warnings."""

from __future__ import annotations

import json

import pytest

from tooli.core.call import PYTHON_CALLER, Call, Caller, Failed, Ok, Options
from tooli.errors import NotFoundError, StateError, Suggestion
from tooli.pipeline.present import Presented, build_meta
from tooli.schema.tool_reader import read_tool
from tooli.text.json_encoder import encode


def call_of(*, version="1.2.0", kwargs=None, **more) -> Call:
    tool = read_tool(
        lambda: None,
        app="file-tools",
        path=("find-files",),
        kwargs=kwargs or {},
        version=version,
    )
    return Call(tool, {}, more.pop("caller", PYTHON_CALLER), more.pop("warnings", []), **more)


def envelope(outcome, call: Call, milliseconds: int):
    return json.loads(Presented(outcome, call, lambda: milliseconds).envelope_json())


class TestEnvelope:
    def test_success_has_result_and_meta(self) -> None:
        found = envelope(Ok([{"path": "src/main.py", "size": 1204}]), call_of(), 34)
        assert encode(found, []).decode() == (
            '{"ok":true,"result":[{"path":"src/main.py","size":1204}],'
            '"meta":{"tool":"file-tools.find-files","version":"1.2.0","duration_ms":34}}'
        )

    def test_failure_has_its_keys_in_a_fixed_order(self) -> None:
        error = StateError(
            "No files matched",
            code="E3001",
            field="pattern",
            suggestion=Suggestion(
                "retry_with_modified_input", "Try '*.py'.", example="x '*.py'", argv=["x", "*.py"]
            ),
            is_retryable=True,
            details={"pattern": "*.rs"},
        )
        found = envelope(Failed(error), call_of(caller=Caller("cli")), 3)
        assert encode(found, []).decode() == (
            '{"ok":false,"error":{"code":"E3001","category":"state","message":"No files matched",'
            '"field":"pattern","suggestion":{"action":"retry_with_modified_input",'
            '"fix":"Try \'*.py\'.","example":"x \'*.py\'","argv":["x","*.py"],'
            '"applicability":"maybe_incorrect"},"is_retryable":true,"details":{"pattern":"*.rs"}},'
            '"meta":{"tool":"file-tools.find-files","version":"1.2.0","duration_ms":3}}'
        )

    def test_empty_fields_are_omitted(self) -> None:
        assert envelope(Ok(None), call_of(version=None), 0) == {
            "ok": True,
            "meta": {"tool": "file-tools.find-files", "duration_ms": 0},
        }
        found = envelope(Failed(NotFoundError("gone")), call_of(), 0)
        assert list(found["error"]) == ["code", "category", "message", "is_retryable"]

    @pytest.mark.parametrize("empty", [[], {}, "", 0, False])
    def test_an_empty_result_is_a_result(self, empty) -> None:
        assert envelope(Ok(empty), call_of(), 0)["result"] == empty

    def test_meta_has_all_fields(self) -> None:
        call = call_of(
            kwargs={"deprecated": "use find"},
            warnings=["careful"],
            caller=Caller("cli", "claude-code", "2.0", "s1"),
            options=Options(dry_run=True),
            meta={"output_schema": {}},
        )
        assert build_meta(call, 5) == {
            "tool": "file-tools.find-files",
            "version": "1.2.0",
            "duration_ms": 5,
            "warnings": ["careful"],
            "dry_run": True,
            "caller_id": "claude-code",
            "caller_version": "2.0",
            "session_id": "s1",
            "deprecated": "use find",
            "output_schema": {},
        }
        assert list(build_meta(call, 5))[:4] == ["tool", "version", "duration_ms", "warnings"]

    def test_a_missing_caller_name_or_version_is_omitted(self) -> None:
        assert "caller_version" not in build_meta(call_of(caller=Caller("cli", "x")), 0)
        nameless = build_meta(call_of(caller=Caller("cli", version="1", session="s")), 0)
        assert (nameless.get("caller_version"), nameless["session_id"]) == (None, "s")

    def test_an_empty_envelope_is_small(self) -> None:
        assert len(encode(envelope(Ok(None), call_of(), 0), [])) < 100


class TestWarnings:
    """The number of warnings is limited: the first of each kind, then a count of the others."""

    def test_few_warnings_are_all_shown(self) -> None:
        warnings = [f"slow disk {i}" for i in range(3)]
        assert build_meta(call_of(warnings=warnings), 1)["warnings"] == warnings

    def test_first_three_warnings_of_a_kind_are_shown(self) -> None:
        warnings = [f"undeclared: fs:write of /{i}" for i in range(70)]
        warnings[5:5] = ["undeclared: fs:read of /x", "other"]
        assert build_meta(call_of(warnings=warnings), 1)["warnings"] == [
            *[f"undeclared: fs:write of /{i}" for i in range(3)],
            "undeclared: fs:read of /x",
            "other",
            "67 more warnings that begin with 'undeclared: fs:write'",
        ]
