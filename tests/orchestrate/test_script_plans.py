"""A dry run of a script plans its calls; `apply` runs exactly these calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.orchestrate.script_app import PRICES, Shop

from tooli import SecretInput, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive, ReadOnly
from tooli.orchestrate.script_plans import describe_call, has_reference


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


def plan_of(app: Tooli, code: str, **options: Any) -> dict[str, Any]:
    done = app.orchestrate(code, dry_run=True, **options)
    assert done.ok, done.error
    return done.result


def apply(app: Tooli, code: str, token: str, **options: Any) -> Any:
    return app.options(apply=token, yes=True).orchestrate(code, **options)


CLEAN_UP = """names = [i['name'] for i in await find('e')]
for n in names:
    await drop(name=n)
names"""


def test_tools_that_read_run_and_others_are_planned() -> None:
    shop = Shop()
    plan = plan_of(shop.app, CLEAN_UP)
    assert shop.ran == ["find"]
    assert plan["basis"] == "dry_run"
    assert plan["complete"] is True
    assert [(action["action"], action["target"]) for action in plan["actions"]] == [
        ("call", 'drop(name="pen")'),
        ("call", 'drop(name="tea")'),
    ]
    assert plan["actions"][0]["details"] == {
        "call": 2,
        "line": 3,
        "tool": "drop",
        "arguments": {"name": "pen"},
    }


def test_plan_is_applied_once() -> None:
    shop = Shop()
    token = plan_of(shop.app, CLEAN_UP)["token"]
    shop.ran.clear()
    done = apply(shop.app, CLEAN_UP, token)
    assert done.unwrap() == ["pen", "tea"]
    assert [name for name in shop.ran if name != "find"] == ["drop pen", "drop tea"]
    assert done.meta["applied"]["count"] == 2
    again = apply(shop.app, CLEAN_UP, token)
    assert (again.ok, again.error.code) == (False, "E1051")


def test_plan_does_not_confirm() -> None:
    shop = Shop()
    token = plan_of(shop.app, CLEAN_UP)["token"]
    done = shop.app.options(apply=token).orchestrate(CLEAN_UP)
    assert done.error is not None
    assert done.error.code == "E1010"
    assert not any(name.startswith("drop") for name in shop.ran)
    assert done.meta["applied"]["count"] == 0


def test_plan_of_a_refused_script_can_be_applied() -> None:
    shop = Shop()
    plan = plan_of(shop.app, CLEAN_UP)
    assert plan["needs_yes"] is True
    assert shop.app.options(apply=plan["token"]).orchestrate(CLEAN_UP).error.code == "E1010"
    done = apply(shop.app, CLEAN_UP, plan["token"])
    assert done.unwrap() == ["pen", "tea"]
    assert done.meta["applied"]["count"] == 2
    assert apply(shop.app, CLEAN_UP, plan["token"]).error.code == "E1051"


def test_call_that_was_refused_and_then_confirmed_is_in_the_plan() -> None:
    shop = Shop()
    code = "try:\n    await drop('a')\nexcept PermissionError:\n    pass\nawait drop('b')"
    token = plan_of(shop.app, code)["token"]
    done = shop.app.options(apply=token).orchestrate(code)
    assert done.error.code == "E1010"
    assert done.meta["applied"]["count"] == 0


def test_plan_of_a_script_that_acted_and_failed_is_used_up() -> None:
    shop = Shop()

    @shop.app.command(auth=[], annotations=Destructive)
    def fail() -> None:
        raise RuntimeError("late")

    code = "await drop(name='tea')\nawait fail()"
    token = plan_of(shop.app, code)["token"]
    failed = apply(shop.app, code, token)
    assert not failed.ok
    assert failed.meta["applied"]["count"] == 2
    assert apply(shop.app, code, token).error.code == "E1051"


def test_plan_of_calls_that_need_no_confirmation() -> None:
    shop = Shop()

    @shop.app.command(auth=[])
    def add(name: str) -> str:
        return name

    assert "needs_yes" not in plan_of(shop.app, "await add('a')")


def test_plan_of_another_script_or_other_data_is_refused(monkeypatch: Any) -> None:
    shop = Shop()
    token = plan_of(shop.app, CLEAN_UP)["token"]
    other = apply(shop.app, CLEAN_UP + "\n", token)
    assert other.error is not None
    assert other.error.code == "E1051"
    monkeypatch.setitem(PRICES, "e", 1)
    changed = apply(shop.app, CLEAN_UP, token)
    assert changed.error is not None
    assert changed.error.code == "E3053"
    assert changed.error.details["added"][0]["target"] == 'drop(name="e")'
    assert not any(name.startswith("drop") for name in shop.ran)


def test_result_of_a_planned_call_is_passed_on() -> None:
    shop = Shop()
    code = "x = await drop(name='tea')\nawait drop(name=x)"
    plan = plan_of(shop.app, code)
    assert plan["complete"] is True
    assert plan["actions"][1]["target"] == "drop(name=<result of call 1>)"
    assert plan["actions"][1]["details"]["arguments"] == {"name": {"$result_of": 1}}
    done = apply(shop.app, code, plan["token"])
    assert done.unwrap() == "tea"
    assert shop.ran == ["drop tea", "drop tea"]


@pytest.mark.parametrize(
    ("code", "line", "planned"),
    [
        ("x = await drop(name='a')\nif x == 'a':\n    await drop(name='b')", 1, 1),
        ("await drop(name='a')\nx = await drop(name='b')\nx.upper()\nawait drop(name='c')", 2, 2),
        ("x = await drop(name='a')\nawait price(name=x)\nawait drop(name='b')", 2, 1),
        ("for t in [drop]:\n    await t(name='a')\nawait drop(name='b')", 2, 1),
        ("try:\n    (await drop(name='a'))[0]\nexcept Exception:\n    pass\nawait drop('b')", 2, 1),
    ],
)
def test_incomplete_plan(code: str, line: int, planned: int) -> None:
    shop = Shop()
    done = shop.app.orchestrate(code, dry_run=True)
    plan = done.unwrap()
    assert plan["complete"] is False
    assert plan["stopped"]["line"] == line
    assert len(plan["actions"]) == planned
    assert "token" not in plan
    assert f"the plan ends on line {line}" in done.meta["warnings"][0]
    assert shop.ran == []


def test_parallel_calls_are_planned_in_order() -> None:
    shop = Shop()
    code = (
        "import asyncio\n"
        "async def one(n):\n"
        "    item = await price(name=n)\n"
        "    return await drop(name=item['name'])\n"
        "await asyncio.gather(*[one(n) for n in ['tea', 'pen', 'gum']])"
    )
    plans = [plan_of(shop.app, code) for _ in range(3)]
    assert plans[0]["actions"] == plans[1]["actions"] == plans[2]["actions"]
    assert [a["details"]["arguments"]["name"] for a in plans[0]["actions"]] == ["tea", "pen", "gum"]
    done = apply(shop.app, code, plans[0]["token"])
    assert done.unwrap() == ["tea", "pen", "gum"]


def test_equal_calls_are_counted() -> None:
    shop = Shop()
    code = "for n in ['a', 'a']:\n    await drop(name=n)"
    plan = plan_of(shop.app, code)
    assert [a["target"] for a in plan["actions"]] == ['drop(name="a")', 'drop(name="a") #2']
    assert apply(shop.app, code, plan["token"]).ok
    assert shop.ran == ["drop a", "drop a"]


class Flaky:
    """An app with a tool whose answer differs between the dry run and the run."""

    def __init__(self) -> None:
        self.app = app = Tooli("flaky")
        self.calls = 0
        self.done: list[str] = []

        @app.command(annotations=Destructive)
        def act(name: str) -> str:
            self.calls += 1
            self.done.append(name)
            return "other" if name == "first" else name

        @app.command(annotations=ReadOnly)
        def ready() -> bool:
            return bool(self.done)


def test_call_that_is_not_in_the_plan_is_stopped() -> None:
    flaky = Flaky()
    code = "await act(name='a')\nif await ready():\n    await act(name='b')\nawait act(name='c')"
    plan = plan_of(flaky.app, code)
    assert plan["complete"] is True  # nothing is done yet, so the plan has no second call
    done = apply(flaky.app, code, plan["token"])
    assert done.error is not None
    assert done.error.code == "E3053"
    assert 'act(name="b") on line 3' in done.error.message
    assert flaky.done == ["a"]
    assert done.meta["applied"]["count"] == 1


def test_script_cannot_catch_the_refusal() -> None:
    flaky = Flaky()
    code = (
        "await act(name='a')\n"
        "try:\n    if await ready():\n        await act(name='b')\nexcept Exception:\n    pass\n"
        "await act(name='c')"
    )
    done = apply(flaky.app, code, plan_of(flaky.app, code)["token"])
    assert done.error is not None
    assert done.error.code == "E3053"
    assert flaky.done == ["a"]


def make_files(folder: Path) -> Tooli:
    app = Tooli("files")

    @app.command(annotations=Destructive)
    @dry_run_support
    def delete(name: str) -> str:
        path = folder / name
        if not record_dry_action("delete", path, state=path):
            path.unlink()
        return name

    @app.command(annotations=ReadOnly)
    def names() -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    return app


def test_actions_of_a_tool_are_in_the_plan_and_its_state_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    app = make_files(folder)
    code = "for n in await names():\n    await delete(name=n)"
    plan = plan_of(app, code)
    inner = plan["actions"][0]["details"]["actions"]
    assert [(action["action"], action["target"]) for action in inner] == [
        ("delete", str(folder / "a"))
    ]
    assert len(list(folder.iterdir())) == 2
    (folder / "b").write_text("changed")
    changed = apply(app, code, plan["token"])
    assert changed.error is not None
    assert changed.error.code == "E3053"
    assert len(list(folder.iterdir())) == 2
    assert apply(app, code, plan_of(app, code)["token"]).ok
    assert list(folder.iterdir()) == []


def test_invalid_call_fails_in_the_dry_run_as_in_the_run() -> None:
    shop = Shop()
    code = "try:\n    await price(name='gold')\nexcept LookupError:\n    await drop(name='tea')"
    assert plan_of(shop.app, code)["actions"][0]["target"] == 'drop(name="tea")'
    failed = shop.app.orchestrate("await price(name='gold')", dry_run=True)
    assert failed.error is not None
    assert failed.error.code == "E3010"


def test_script_that_only_reads_has_an_empty_plan() -> None:
    plan = plan_of(Shop().app, "len(await find())")
    assert (plan["actions"], plan["complete"]) == ([], True)
    assert apply(Shop().app, "len(await find())", plan["token"]).unwrap() == 3


def test_sleeping_takes_no_time_in_a_plan() -> None:
    code = "import asyncio\nawait asyncio.sleep(10_000)\nawait drop(name='a')"
    assert len(plan_of(Shop().app, code)["actions"]) == 1


def test_json_plan_has_a_dry_run() -> None:
    shop = Shop()
    steps = '{"steps": [{"call": "find", "as": "items"}, '
    steps += '{"call": "drop", "for_each": "$items", "with": {"name": "$item.name"}}]}'
    plan = plan_of(shop.app, steps)
    assert len(plan["actions"]) == 3
    assert apply(shop.app, steps, plan["token"]).unwrap() == ["gum", "pen", "tea"]


def test_secrets_are_in_no_plan() -> None:
    app = Tooli("vault")

    @app.command()
    def store(key: SecretInput[str]) -> None: ...

    code = "await store(key='swordfish')"
    done = app.orchestrate(code, dry_run=True)
    assert done.unwrap()["stopped"]["reason"].startswith("store() takes secrets")
    assert "swordfish" not in str(done.unwrap()["actions"])
    token = plan_of(app, "1")["token"]
    assert not apply(app, code, token).ok


def test_text_of_a_call() -> None:
    assert describe_call("f", {"a": "ä", "b": [1, None]}) == 'f(a="ä", b=[1, null])'
    assert len(describe_call("f", {"a": "x" * 1000})) <= 301


def test_references() -> None:
    assert has_reference({"a": [{"$result_of": 1}]})
    assert not has_reference({"a": [{"$result_of": 1, "b": 2}], "c": "$result_of"})
