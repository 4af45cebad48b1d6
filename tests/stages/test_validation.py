"""`--validate` and `pre_validate=` on every interface."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tooli import Context, NotFoundError, Tooli
from tooli.annotations import Destructive
from tooli.testing.app_interfaces import Case, Interface, interfaces
from tooli.testing.command_runner import invoke

KNOWN = ("old.log", "new.log")


class Order(BaseModel):
    sku: str
    count: int = 1

    def pre_validate(self) -> None:
        if self.count > 5:
            raise ValueError(f"only 5 of {self.sku} are left")


def make_app(ran: list[str] | None = None) -> Tooli:
    app = Tooli("shop", version="1.0")
    runs = [] if ran is None else ran

    def exists(name: str) -> None:
        if name not in KNOWN:
            raise NotFoundError(f"There is no {name}.", field="name")

    @app.command(annotations=Destructive, pre_validate=exists)
    def drop(name: str, times: int = 1) -> list[str]:
        """Drop a file."""
        runs.append(name)
        return [name] * times

    @app.command()
    def order(items: list[Order]) -> dict[str, Any]:
        """Order things."""
        runs.append("order")
        return {"count": len(items)}

    @app.command()
    def say(word: str) -> None:
        """Print a word."""
        print(word)

    return app


APP = make_app()


@pytest.mark.parametrize(
    "interface", [one for one in interfaces(APP) if not one.streams], ids=lambda one: one.name
)
class TestOnEveryInterface:
    def test_valid_call_is_not_run(self, interface: Interface) -> None:
        case = Case("drop", {"name": "old.log"}, {"validate": True})
        envelope = interface.send_case(case).envelope
        assert envelope["ok"] is True, envelope
        assert envelope["result"] == {"valid": True}

    @pytest.mark.parametrize("options", [{"validate": True}, {"dry_run": True}, {"yes": True}, {}])
    def test_error_of_the_check_comes_before_the_confirmation(
        self, interface: Interface, options: dict[str, Any]
    ) -> None:
        envelope = interface.send_case(Case("drop", {"name": "odl.log"}, options)).envelope
        assert envelope["error"]["code"] == "E3010"
        assert envelope["error"]["message"] == "There is no odl.log."

    def test_all_problems_of_the_input_are_listed(self, interface: Interface) -> None:
        case = Case("order", {"items": [{"count": "x"}, {"sku": 3}]}, {"validate": True})
        error = interface.send_case(case).envelope["error"]
        assert len(error["details"]["errors"]) == 3

    def test_all_errors_of_the_checks_are_listed(self, interface: Interface) -> None:
        items = [{"sku": "a", "count": 9}, {"sku": "b"}, {"sku": "c", "count": 7}]
        error = interface.send_case(Case("order", {"items": items})).envelope["error"]
        assert error["code"] == "E1000"
        assert error["message"] == "only 5 of a are left (and 1 more)"
        assert error["details"]["errors"] == [
            {"field": "items.0", "code": "E1000", "message": "only 5 of a are left"},
            {"field": "items.2", "code": "E1000", "message": "only 5 of c are left"},
        ]


def test_field_of_an_error_of_a_model_is_below_its_argument() -> None:
    app = Tooli("demo")

    class Part(BaseModel):
        name: str

        def pre_validate(self) -> None:
            raise NotFoundError("There is no such part.", field="name")

    def build(parts: Any, part: Any) -> str:
        return ""

    build.__annotations__ = {"parts": dict[str, Part], "part": Part, "return": str}
    app.command()(build)
    app.command("make", input_model=Part)(build_one)
    error = app.call("build", parts={"a": {"name": "x"}}, part={"name": "y"}).error
    assert error is not None and error.details is not None
    assert [entry["field"] for entry in error.details["errors"]] == ["parts.a.name", "part.name"]
    error = app.call("make", name="x").error
    assert error is not None
    assert error.field == "name"


def build_one(part: Any) -> str:
    return ""


def test_nothing_runs() -> None:
    ran: list[str] = []
    app = make_app(ran)
    assert app.validate("drop", name="old.log").unwrap() == {"valid": True}
    assert app.options(yes=True).validate("drop", name="old.log").unwrap() == {"valid": True}
    assert app.validate("drop", name="x").error.code == "E3010"  # type: ignore[union-attr]
    assert not app.call("drop", name="x", yes=True).ok
    assert ran == []
    assert app.call("drop", name="old.log", yes=True).unwrap() == ["old.log"]
    assert ran == ["old.log"]


def test_authorization_comes_first() -> None:
    app = Tooli("demo", security_policy="strict")
    checked: list[str] = []

    @app.command(auth=["admin"], pre_validate=lambda name: checked.append(name))
    def wipe(name: str) -> str:
        return name

    error = app.validate("wipe", name="a").error
    assert error is not None
    assert error.code == "E2001"
    assert checked == []


@pytest.mark.parametrize("argv", [["say", "hi", "--validate"], ["drop", "old.log", "--validate"]])
def test_text_says_that_nothing_ran(argv: list[str]) -> None:
    done = invoke(APP, *argv, "-o", "text")
    assert (done.exit_code, done.stdout) == (0, "The call is valid. Nothing ran.\n")


def test_flag_in_place_of_a_value_is_refused() -> None:
    done = invoke(APP, "drop", "--name", "--validate", "--json")
    assert done.exit_code == 2
    assert "write --name=--validate" in done.stdout


def test_check_gets_the_context_and_may_be_async() -> None:
    app = Tooli("demo")

    async def check(ctx: Context, name: str) -> None:
        await asyncio.sleep(0)
        raise NotFoundError(f"{name} ({type(ctx).__name__})")

    @app.command(pre_validate=check)
    def show(ctx: Context, name: str) -> str:
        return name

    for result in (app.call("show", name="a"), asyncio.run(app.acall("show", name="a"))):
        assert result.error is not None
        assert result.error.message == "a (Context)"


def test_result_of_a_check_is_an_error() -> None:
    app = Tooli("demo")

    @app.command(pre_validate=lambda name: name == "a")
    def show(name: str) -> str:
        return name

    error = app.call("show", name="b").error
    assert error is not None
    assert "pre_validate returned bool" in error.message


def test_event_loop_does_not_wait_for_a_check() -> None:
    app = Tooli("demo")
    entered, other_ran = threading.Event(), threading.Event()

    def check(name: str) -> None:
        entered.set()
        assert other_ran.wait(30)  # set by the event loop while the check runs

    @app.command(pre_validate=check)
    async def show(name: str) -> str:
        return name

    async def main() -> str:
        call = asyncio.create_task(app.acall("show", name="a"))
        while not (entered.is_set() or call.done()):
            await asyncio.sleep(0)
        other_ran.set()
        return (await call).unwrap()

    assert asyncio.run(main()) == "a"


def test_cancelled_check_ends_the_call() -> None:
    app = Tooli("demo")
    entered, may_end = threading.Event(), threading.Event()
    left: list[str] = []

    def check(name: str) -> None:
        entered.set()
        may_end.wait(30)

    def watch(call: Any) -> Any:
        try:
            return (yield call)
        finally:
            left.append("watch")

    app.use(watch)

    @app.command(pre_validate=check)
    async def show(name: str) -> str:
        left.append("show")
        return name

    async def main() -> None:
        call = asyncio.create_task(app.acall("show", name="a"))
        while not (entered.is_set() or call.done()):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        may_end.set()

    asyncio.run(main())
    assert "show" not in left


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
def test_check_is_confined_as_the_function(tmp_path: Path) -> None:
    file = tmp_path / "made"
    app = Tooli("demo")

    def check(name: str) -> None:
        file.write_text(name)

    @app.command(capabilities=["fs:read:/usr"], isolation="required", pre_validate=check)
    def show(name: str) -> str:
        return name

    result = app.validate("show", name="a")
    assert not result.ok
    assert not file.exists()


SCRIPT = """
import typer
from tooli import Tooli

app = Tooli("demo")

@app.callback()
def main(verbose: bool = False) -> None:
    "Demo."

@app.command(pre_validate=lambda name: None)
def show(name: str) -> str:
    "Show."
    raise SystemExit(9)

app()
"""


@pytest.mark.parametrize("argv", [["show", "a", "--validate"], ["--validate", "show", "a"]])
def test_app_with_a_callback(tmp_path: Path, argv: list[str]) -> None:
    file = tmp_path / "demo.py"
    file.write_text(SCRIPT)
    command = [sys.executable, str(file), *argv, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert '"result":{"valid":true}' in done.stdout
