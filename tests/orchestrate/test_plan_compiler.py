"""JSON plans are compiled to scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.orchestrate.script_app import Shop

from tooli import InputError
from tooli.orchestrate.plan_compiler import compile_plan, read_plan
from tooli.orchestrate.script_tools import read_script_tools

TOOLS = read_script_tools(Shop().app.catalog)


def test_script_of_a_plan() -> None:
    plan = {
        "steps": [
            {"call": "find", "with": {"text": "$part"}, "as": "items"},
            {"call": "price", "for_each": "$items", "with": {"name": "$item.name"}},
        ],
        "result": {"first": "$items.0.name", "all": "$step2", "text": "$$x", "n": [1, None]},
    }
    assert compile_plan(plan, TOOLS, {"part": "e"}) == (
        "import asyncio\n"
        "items = await find(text=part)\n"
        "step2 = list(await asyncio.gather(*[price(name=item_['name']) for item_ in items]))\n"
        'return {"first": items[0][\'name\'], "all": step2, "text": "$x", "n": [1, None]}\n'
    )


def test_plan_runs() -> None:
    plan = {
        "steps": [
            {"call": "find", "with": {"text": "$part"}, "as": "items"},
            {"call": "price", "for_each": "$items", "with": {"name": "$item.name"}},
        ]
    }
    done = Shop().app.orchestrate(json.dumps(plan), inputs={"part": "e"})
    assert [item["cents"] for item in done.unwrap()] == [150, 300]
    assert done.meta["calls"] == {"find": 1, "price": 2}


def test_plan_is_type_checked() -> None:
    shop = Shop()
    plan = {"steps": [{"call": "find"}, {"call": "price", "with": {"name": 3}}]}
    error = shop.app.orchestrate(json.dumps(plan)).error
    assert error is not None
    assert error.code == "E1070"
    assert shop.ran == []


STEP: dict[str, Any] = {"call": "find", "as": "items"}


@pytest.mark.parametrize(
    ("plan", "field", "message"),
    [
        ({"steps": []}, "steps", "a list of 1 to 1000 steps"),
        ({"steps": 3}, "steps", "a list of 1 to 1000 steps"),
        ({"steps": [STEP], "reslt": 1}, "steps", "did you mean 'result'"),
        ({"steps": [3]}, "steps.0", "must be an object"),
        ({"steps": [{**STEP, "wth": {}}]}, "steps", "did you mean 'with'"),
        ({"steps": [{"call": "fin"}]}, "steps.0.call", "did you mean 'find'"),
        ({"steps": [{"call": 3}]}, "steps.0.call", "there is no tool '3'"),
        ({"steps": [{**STEP, "with": []}]}, "steps.0.with", "`with` must be an object"),
        ({"steps": [{**STEP, "with": {"tex": 1}}]}, "steps.0.with.tex", "did you mean 'text'"),
        ({"steps": [{**STEP, "as": "a b"}]}, "steps.0.as", "a name such as"),
        ({"steps": [{**STEP, "as": "find"}]}, "steps.0.as", "is taken"),
        ({"steps": [STEP, STEP]}, "steps.1.as", "is taken"),
        ({"steps": [{**STEP, "with": {"text": "$x"}}]}, "steps.0.with.text", "known are none"),
        ({"steps": [{**STEP, "with": {"text": "$item"}}]}, "steps.0.with.text", "refers to no"),
        ({"steps": [STEP], "result": "$item"}, "result", "did you mean 'items'"),
        ({"steps": [STEP], "result": "$items; drop()"}, "result", "refers to no"),
        ({"steps": [STEP], "result": "$items.__class__.x y"}, "result", "refers to no"),
    ],
)
def test_invalid_plans(plan: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        compile_plan(plan, TOOLS, {})
    assert (error.value.code, error.value.field) == ("E1070", field)
    assert message in error.value.message


def test_deep_plan() -> None:
    value: object = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(InputError, match="more than 50 levels"):
        compile_plan({"steps": [STEP], "result": value}, TOOLS, {})


def test_texts_of_a_plan_are_literals() -> None:
    hostile = "'\"\"\"\n); await drop(name='x') #"
    plan = {"steps": [{**STEP, "with": {"text": hostile}}], "result": {hostile: hostile}}
    shop = Shop()
    done = shop.app.orchestrate(json.dumps(plan), yes=True)
    assert done.unwrap() == {hostile: hostile}
    assert shop.ran == ["find"]


@pytest.mark.parametrize(
    "source",
    [
        "{'a': 1}",
        '{"a": 1}',
        "[1, 2]",
        "[",
        "steps",
        "{'steps': await find()}",
        "[1]\n[{'call': 1}]",
    ],
)
def test_script_is_no_plan(source: str) -> None:
    assert read_plan(source) is None


def test_plan_is_read() -> None:
    assert read_plan(' {"steps": 1}') == {"steps": 1}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('{"steps": [{"call": "find"},]}', "not valid JSON"),
        ('{"steps": [{"call": "find"} {"call": "find"}]}', "not valid JSON: Expecting ',' delim"),
        ("{'steps': [{'call': 'find'}]}", "not valid JSON"),
        ('[{"call": "find"}]', "a plan is an object"),
        ('{"step": [{"call": "find"}]}', "no field 'step'; did you mean 'steps'"),
        ('{"call": "find"}', "no field 'call'"),
    ],
)
def test_text_that_is_meant_as_a_plan(source: str, message: str) -> None:
    error = Shop().app.orchestrate(source).error
    assert error is not None
    assert error.code == "E1070"
    assert message in error.message
