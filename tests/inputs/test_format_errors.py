"""Results of commands as inputs: envelopes, incomplete results, errors, and unexpected formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tooli import StdinOr, Tooli
from tooli.inputs.format_errors import is_envelope
from tooli.testing import invoke


class Item(BaseModel):
    name: str = ""
    size: int = 0


class Extra(BaseModel, extra="allow"):
    name: str = ""


META = {"tool": "shop.find", "duration_ms": 1}
ITEMS = [{"name": "a", "size": 1}, {"name": "b", "size": 2}]


def make_envelope(result: Any, **meta: Any) -> str:
    return json.dumps({"ok": True, "result": result, "meta": {**META, **meta}})


def make_app(**limits: Any) -> Tooli:
    app = Tooli("reader")

    @app.command(**limits)
    def models(items: StdinOr[list[Item]]) -> list[Item]:
        return items

    @app.command(**limits)
    def each(items: StdinOr[Iterator[Item]]) -> list[Item]:
        return list(items)

    @app.command(**limits)
    def dicts(items: StdinOr[list[dict]]) -> list[dict]:
        return items

    @app.command()
    def one(item: StdinOr[Item]) -> Item:
        return item

    @app.command()
    def extra(items: StdinOr[list[Extra]]) -> int:
        return len(items)

    @app.command()
    def text(text: StdinOr[str]) -> str:
        return text

    return app


def read(command: str, data: str, **limits: Any) -> Any:
    return invoke(make_app(**limits), command, "-", input=data.encode(), mode="json")


@pytest.mark.parametrize("command", ["models", "each", "dicts"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_list_in_an_envelope_is_read_as_records(command: str, count: int) -> None:
    assert read(command, make_envelope(ITEMS[:count]) + "\n").result == ITEMS[:count]


@pytest.mark.parametrize("command", ["models", "each", "dicts"])
def test_object_in_an_envelope_is_one_record(command: str) -> None:
    assert read(command, make_envelope(ITEMS[0])).result == [ITEMS[0]]


@pytest.mark.parametrize("command", ["models", "each", "dicts"])
def test_null_in_an_envelope_is_no_record(command: str) -> None:
    assert read(command, make_envelope(None)).result == []


@pytest.mark.parametrize("command", ["models", "each", "dicts"])
def test_envelopes_on_several_lines_are_joined(command: str) -> None:
    data = "\n".join([make_envelope(ITEMS[0]), make_envelope([ITEMS[1]])])
    assert read(command, data).result == ITEMS


@pytest.mark.parametrize("command", ["models", "each", "dicts"])
def test_indented_object_is_one_record(command: str) -> None:
    assert read(command, json.dumps(ITEMS[0], indent=2)).result == [ITEMS[0]]
    indented = json.dumps(json.loads(make_envelope(ITEMS)), indent=2)
    assert read(command, indented).result == ITEMS
    assert read(command, '{"name": "a",\n"size": 1}').result == [ITEMS[0]]


def test_envelope_is_unwrapped_for_one_object() -> None:
    assert read("one", make_envelope(ITEMS[0])).result == ITEMS[0]


def test_text_is_not_unwrapped() -> None:
    data = make_envelope("hello")
    assert read("text", data).result == data


@pytest.mark.parametrize("command", ["models", "each", "dicts"])
def test_json_file_with_one_object_is_one_record(command: str, tmp_path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(ITEMS[0]))
    done = invoke(make_app(), command, str(tmp_path / "a.json"), mode="json")
    assert done.result == [ITEMS[0]]


@pytest.mark.parametrize(
    "value",
    [
        {"ok": True, "result": 1},
        {"ok": 1, "result": 1, "meta": META},
        {"ok": True, "result": 1, "meta": {}},
        {"ok": True, "result": 1, "error": {}, "meta": META},
        {"ok": False, "result": 1, "meta": META},
        {"ok": True, "result": 1, "meta": META, "more": 1},
        {"ok": True, "result": 1, "meta": "text"},
        [make_envelope(1)],
    ],
)
def test_other_objects_are_not_envelopes(value: object) -> None:
    assert not is_envelope(value)


# ------------------------------------------------------------------ incomplete results and errors

INCOMPLETE = [{"page": {"limit": 2, "next_cursor": "x"}}, {"truncated": {"shown": 2, "total": 9}}]


@pytest.mark.parametrize("meta", INCOMPLETE)
@pytest.mark.parametrize("limits", [{}, {"timeout": 60}])
@pytest.mark.parametrize("command", ["models", "each", "dicts"])
def test_incomplete_result_adds_a_warning(command: str, limits: Any, meta: Any) -> None:
    done = read(command, make_envelope(ITEMS, **meta), **limits)
    assert done.result == ITEMS
    [warning] = done.envelope["meta"]["warnings"]
    assert "only 2 records of the result of shop.find" in warning
    assert ("--limit" if "page" in meta else "--jsonl") in warning


def test_last_page_adds_no_warning() -> None:
    done = read("models", make_envelope(ITEMS, page={"limit": 2, "total": 2}))
    assert "warnings" not in done.envelope["meta"]


@pytest.mark.parametrize(
    ("command", "before"),
    [(command, before) for command in ("models", "each", "dicts") for before in ("", "{}\n")]
    + [("one", "")],
)
def test_failure_of_the_first_command_is_an_error(command: str, before: str) -> None:
    error = {"code": "E3010", "category": "state", "message": "gone", "is_retryable": False}
    done = read(command, before + json.dumps({"ok": False, "error": error, "meta": META}))
    assert done.exit_code == 65
    assert "shop.find failed and wrote this input: E3010 gone" in done.error["message"]
    assert done.error["details"]["error"] == {"code": "E3010", "message": "gone"}


# ------------------------------------------------------------------ unexpected formats


@pytest.mark.parametrize(
    "data",
    [
        "ok: true\nresult:\n  - name: a\n",
        "ok: false\nerror:\n  code: E1\n",
        "a\t1\nb\t2\n",
        "a\t1\n",
        "| name | size |\n| --- | --- |\n",
        "{broken\n",
        '[{"name": "a"} 2',
    ],
)
@pytest.mark.parametrize("command", ["models", "each"])
def test_unexpected_format_names_jsonl(command: str, data: str) -> None:
    done = read(command, data)
    assert done.error["code"] == "E1065"
    assert "--jsonl" in done.error["suggestion"]["fix"]


def test_yaml_answer_is_refused_for_objects() -> None:
    assert read("dicts", "ok: true\nresult: 1\n").exit_code == 65


def test_columns_of_a_model_with_extra_fields_are_not_checked() -> None:
    assert read("extra", "x,y\n1,2\n").result == 1
