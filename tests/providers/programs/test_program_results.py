from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tooli.errors import DependencyError, InputError, Interrupted, NotFoundError, ToolError
from tooli.providers.programs.program_process import FinishedProcess
from tooli.providers.programs.program_results import parse_json, program_environment, read_result


def finished(out: str | bytes = "", err: str = "", code: int = 0, **fields: Any) -> FinishedProcess:
    data = out if isinstance(out, bytes) else out.encode()
    values = {"discarded_bytes": 0, "timed_out": False, "stopped": False, **fields}
    return FinishedProcess(exit_code=code, stdout=data, stderr=err.encode(), **values)


def failure(*args: Any, **fields: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read_result(finished(*args, **fields), "prog")
    return caught.value


def test_structured_output() -> None:
    assert read_result(finished('{"a": 1}\n'), "p") == {"a": 1}
    assert read_result(finished("[1,\n 2]"), "p") == [1, 2]
    assert read_result(finished('{"a": 1}\n\n{"a": 2}\n'), "p") == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "text",
    [
        *("42", '"text"', "true", "{'a': 1}", '{"a": 1} and more', '{"a": 1}\nend', "{broken"),
        *('{"a": NaN}', "[" * 5000 + "]" * 5000, "[" * 300 + "]" * 300, "[section]\nkey = 1"),
    ],
)
def test_other_output_is_text(text: str) -> None:
    assert parse_json(text) is None
    assert read_result(finished(text), "p") == text


def test_text_and_warnings() -> None:
    warnings: list[str] = []
    assert read_result(finished("done\r\n", "careful\n"), "p", warnings.append) == "done"
    assert read_result(finished("", "1 file changed\n"), "p", warnings.append) == "1 file changed"
    assert read_result(finished(b"\xff\xfe"), "p") == "��"
    cut = finished('{"a"', discarded_bytes=96)
    assert read_result(cut, "p", warnings.append) == '{"a"'
    assert warnings == [
        "p wrote to stderr: careful",
        "the output of 100 bytes was cut to 4 bytes",
    ]


def test_envelope_about_a_token() -> None:
    error = {"code": "E2001", "category": "auth", "message": "x"}
    text = json.dumps({"ok": False, "error": error, "meta": {"tool": "a"}})
    found = failure(text, code=30)
    assert (found.code, found.details) == ("E2000", {"remote_code": "E2001"})


def test_envelopes_of_tooli() -> None:
    meta = '"meta": {"tool": "x.y"}'
    assert read_result(finished(f'{{"ok": true, "result": 5, {meta}}}'), "p") == 5
    text = f'{{"ok": false, "error": {{"code": "E3010", "message": "no", "field": "id"}}, {meta}}}'
    error = failure(text, code=10)
    assert type(error) is NotFoundError and (error.message, error.field) == ("no", "id")
    strange = failure('{"ok": false, "error": {"code": 5}, ' + meta + "}", code=1)
    assert strange.message == "The program failed."
    assert read_result(finished('{"ok": true, "result": 5}'), "p") == {"ok": True, "result": 5}


def test_failures() -> None:
    usage = failure(err="usage: p\n\x1b[31mp: error: no such option: --x\x1b[0m\n", code=2)
    assert type(usage) is InputError
    assert usage.message == "p" + "rog does not accept the arguments: p: error: no such option: --x"
    error = failure(out="some output", err="│ bad │\n╰──╯", code=1)
    assert type(error) is DependencyError and error.message == "prog failed with exit code 1: bad"
    assert error.details == {"exit_code": 1, "stderr": "│ bad │\n╰──╯", "stdout": "some output"}
    assert failure(code=3).message == "prog failed with exit code 3."
    assert failure(out="x" * 9000, code=3).details["stdout"].startswith("…")  # type: ignore[index]
    if os.name != "nt":
        assert failure(code=-9).message == "prog was ended by SIGKILL."
    assert failure(code=-300).message == "prog was ended by signal 300."
    assert type(failure(code=-15, stopped=True)) is Interrupted
    assert failure(code=2).message == "prog exited: 2"


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TOOLI_TOKEN", "secret")
    found = program_environment({"PAGER": "less"}, frozenset(["TOOLI_TOKEN"]))
    assert "FORCE_COLOR" not in found and "TOOLI_TOKEN" not in found
    assert (found["NO_COLOR"], found["PAGER"]) == ("1", "less")
