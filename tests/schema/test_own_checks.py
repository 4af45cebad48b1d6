"""The checks that a command makes itself: `pre_validate=`, and methods of its classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, model_validator

from tooli import Context, DefinitionError, Depends, Output, Tooli
from tooli.schema.own_checks import has_check


@dataclass
class Range:
    first: int
    last: int

    def pre_validate(self) -> None:
        if self.last < self.first:
            raise ValueError("last is before first")


class Order(BaseModel):
    sku: str


class WithValidator(BaseModel):
    size: int

    @model_validator(mode="before")
    @classmethod
    def pre_validate(cls, data: Any) -> Any:
        return data


def register(check: Any, function: Any) -> None:
    app = Tooli("demo")
    app.command("run", pre_validate=check)(function)
    app.find("run")


@pytest.mark.parametrize(("kind", "expected"), [(Range, True), (WithValidator, False), (3, False)])
def test_a_method_without_parameters_is_a_check(kind: object, expected: bool) -> None:
    assert has_check(kind) is expected


def test_checked_parameters_are_found_in_containers() -> None:
    app = Tooli("demo")

    @app.command()
    def scan(a: Range, b: list[Range], c: Range | None = None, d: str = "", e: int = 0) -> str:
        return d * e

    tool = app.find("scan")
    assert tool is not None
    assert tool.checked_params == ("a", "b", "c")
    assert tool.pre_validate is None


def test_command_of_plain_types_has_no_checks() -> None:
    app = Tooli("demo")

    @app.command()
    def scan(name: str, count: int = 1) -> str:
        return name * count

    tool = app.find("scan")
    assert tool is not None
    assert (tool.checked_params, tool.pre_validate) == ((), None)


@pytest.mark.parametrize(
    "check",
    [
        lambda name: None,
        lambda name, ctx: None,
        lambda **arguments: None,
        lambda name, limit=3: None,
    ],
)
def test_check_takes_parameters_of_the_command(check: Any) -> None:
    def run(ctx: Context, name: str) -> str:
        return name

    register(check, run)


def make_session() -> str:
    return "session"


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (lambda nmae: None, "takes 'nmae', which is not a parameter of the command; did you mean"),
        (lambda name, /: None, "takes 'name' by position"),
        (lambda file: None, "cannot take 'file', which is made only when the command runs"),
        (lambda session: None, "cannot take 'session', which is made only when"),
    ],
)
def test_other_parameters_are_refused(check: Any, problem: str) -> None:
    def run(name: str, file: Output, session: Annotated[str, Depends(make_session)]) -> str:
        return name

    with pytest.raises(DefinitionError, match=r"pre_validate= ") as error:
        register(check, run)
    assert problem in str(error.value)
    assert "test_own_checks.py:" in str(error.value)


def test_check_of_an_input_model_takes_the_model() -> None:
    app = Tooli("demo")

    @app.command(input_model=Order, pre_validate=lambda order: None)
    def buy(order: Order) -> str:
        return order.sku

    assert app.call("buy", sku="a").unwrap() == "a"
    with pytest.raises(DefinitionError, match="'sku', which is not a parameter"):
        app.command("buy2", input_model=Order, pre_validate=lambda sku: None)(buy)
        app.find("buy2")


def test_pre_validate_must_be_a_function() -> None:
    with pytest.raises(DefinitionError, match="pre_validate"):
        register("exists", lambda: None)
