"""`app.orchestrate(…)`: what it accepts, and what it answers."""

from __future__ import annotations

import pytest
from tests.orchestrate.script_app import Shop

from tooli.testing import invoke


def test_last_expression_is_the_result() -> None:
    shop = Shop()
    done = shop.app.orchestrate("items = await find('e')\nprint('found')\nlen(items)")
    assert done.unwrap() == 2
    assert done.meta["calls"] == {"find": 1}
    assert done.meta["printed"] == "found"
    assert done.meta["sandbox"].startswith("monty ")


async def test_async_twin() -> None:
    done = await Shop().app.aorchestrate("return (await price(name='tea'))['cents']")
    assert done.unwrap() == 300


def test_inputs_are_variables() -> None:
    source = "[n for n in names if len(n) > limit]"
    inputs = {"names": ["a", "abc"], "limit": 2, "other": {"x": 1}, "none": None, "mixed": [1, ""]}
    assert Shop().app.orchestrate(source, inputs=inputs).unwrap() == ["abc"]


@pytest.mark.parametrize("name", ["find", "a b", "for", "_x", "json", "tooli_start_"])
def test_input_with_an_invalid_name(name: str) -> None:
    done = Shop().app.orchestrate("1", inputs={name: 1})
    assert done.error is not None
    assert (done.error.code, done.error.field) == ("E1003", "inputs")


def test_only_some_tools() -> None:
    shop = Shop()
    done = shop.app.orchestrate("await price(name='tea')", tools=["find"])
    assert done.error is not None
    assert done.error.code == "E1070"
    assert shop.app.orchestrate("await find()", tools=["find"]).ok
    unknown = shop.app.orchestrate("1", tools=["fin"])
    assert unknown.error is not None
    assert "did you mean 'find'" in unknown.error.message


def test_read_only() -> None:
    shop = Shop()
    done = shop.app.orchestrate("await drop(name='tea')", read_only=True, yes=True)
    assert done.error is not None
    assert done.error.code == "E1070"
    assert shop.app.orchestrate("len(await find())", read_only=True).unwrap() == 3


@pytest.mark.parametrize(("name", "value"), [("max_calls", 0), ("concurrency", 1000)])
def test_numbers_have_bounds(name: str, value: int) -> None:
    done = Shop().app.orchestrate("1", **{name: value})
    assert done.error is not None
    assert (done.error.code, done.error.field) == ("E1003", name)


def test_options_of_the_surface_apply() -> None:
    shop = Shop()
    assert not shop.app.orchestrate("await drop(name='tea')").ok
    assert shop.app.options(yes=True).orchestrate("await drop(name='tea')").unwrap() == "tea"
    assert shop.app.orchestrate("await drop(name='pen')", yes=True).unwrap() == "pen"
    assert shop.ran == ["drop tea", "drop pen"]


def test_dry_run_runs_nothing() -> None:
    shop = Shop()
    done = shop.app.orchestrate("await drop(name='tea')", dry_run=True, yes=True)
    assert done.ok
    assert shop.ran == []


def test_unknown_keyword_is_an_error() -> None:
    done = Shop().app.orchestrate("1", tool=["find"])  # type: ignore[call-arg]
    assert done.error is not None
    assert done.error.code == "E1004"


def test_idempotency_key_runs_a_script_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    shop = Shop()
    first = shop.app.orchestrate("await drop(name='tea')", yes=True, idempotency_key="k1")
    again = shop.app.orchestrate("await drop(name='tea')", yes=True, idempotency_key="k1")
    assert first.unwrap() == again.unwrap() == "tea"
    assert shop.ran == ["drop tea"]


def test_json_plan_is_compiled() -> None:
    plan = '{"steps": [{"call": "find", "as": "items"}], "result": {"first": "$items.0.name"}}'
    assert Shop().app.orchestrate(plan).unwrap() == {"first": "gum"}


def test_script_may_begin_with_a_brace() -> None:
    assert Shop().app.orchestrate("{'a': 1}").unwrap() == {"a": 1}
    assert Shop().app.orchestrate('{"a": 1}').unwrap() == {"a": 1}


def test_strict_policy_checks_the_tools() -> None:
    shop = Shop(security_policy="strict")
    assert shop.app.orchestrate("len(await find())").unwrap() == 3

    @shop.app.command()
    def undeclared() -> int:
        return 1

    done = shop.app.orchestrate("await undeclared()")
    assert done.error is not None
    assert done.error.code == "E2002"


def test_validation_checks_the_script(tmp_path) -> None:
    shop = Shop()
    assert shop.app.options(validate=True).orchestrate("await find()").unwrap() == {"valid": True}
    error = shop.app.options(validate=True).orchestrate("await finds()").error
    assert error is not None
    assert error.code == "E1070"
    script = tmp_path / "script.py"
    script.write_text("await find()\nawait price(1)\n")
    for given in ([str(script)], ["-"]):
        done = invoke(
            shop.app, "orchestrate", "run", *given, "--validate", input=script.read_text()
        )
        assert done.envelope["error"]["code"] == "E1070"
    script.write_text("await price(name)")
    argv = ("orchestrate", "run", str(script), "--validate")
    assert invoke(shop.app, *argv, "--inputs", '{"name": "tea"}').result == {"valid": True}
    assert invoke(shop.app, *argv).envelope["error"]["code"] == "E1070"
    assert shop.ran == []


def test_suggested_call_is_that_of_the_script() -> None:
    error = Shop().app.orchestrate("1", max_cals=3).error  # pyright: ignore[reportCallIssue]
    assert error is not None
    assert error.suggestion["example"] == "app.orchestrate('1', max_calls=3)"
