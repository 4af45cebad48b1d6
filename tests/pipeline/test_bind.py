"""bind: arguments fitted, defaults added, all problems reported at once."""

from __future__ import annotations

import pathlib
from typing import Annotated

import pydantic
import pytest
import typer

from tooli import Argument, Context, Option
from tooli.core.call import PYTHON_CALLER, Call, Problem
from tooli.errors import InputError
from tooli.pipeline.drivers import bind_arguments
from tooli.schema.convert import Converted
from tooli.schema.tool_reader import read_tool


class Order(pydantic.BaseModel):
    item: str
    count: Annotated[int, pydantic.Field(gt=0)] = 1

    @pydantic.model_validator(mode="after")
    def few_cakes(self):
        if self.item == "cake" and self.count > 3:
            raise ValueError("too many cakes")
        return self


def call_of(fn, *, text=None, problems=(), **arguments) -> Call:
    tool = read_tool(fn, app="app", path=("tool",), kwargs=text or {})
    return Call(tool, arguments, PYTHON_CALLER, [], problems=problems)


def refused(call: Call) -> InputError:
    with pytest.raises(InputError) as caught:
        bind_arguments(call)
    return caught.value


def find(pattern: str, root: pathlib.Path = pathlib.Path(), depth: float = 3): ...


class TestFitting:
    def test_given_and_defaults(self) -> None:
        assert bind_arguments(call_of(find, pattern="*.py", depth=5)) == {
            "pattern": "*.py",
            "root": pathlib.Path(),
            "depth": 5.0,
        }

    def test_a_factory_is_called_each_time(self) -> None:
        def tool(tags: Annotated[list[str], Option(default_factory=list)]): ...

        call = call_of(tool)
        assert bind_arguments(call)["tags"] is not bind_arguments(call)["tags"]

    def test_a_default_list_is_not_shared(self) -> None:
        def tool(tags: list[str] = ["a"]): ...  # noqa: B006

        bind_arguments(call_of(tool))["tags"].append("b")
        assert bind_arguments(call_of(tool)) == {"tags": ["a"]}

    def test_what_is_injected(self) -> None:
        def tool(ctx: Context, theirs: typer.Context): ...

        call = call_of(tool)
        bound = bind_arguments(call)
        assert isinstance(bound["ctx"], Context)
        assert bound["ctx"].tool == "app.tool"
        assert isinstance(bound["theirs"], typer.Context)
        assert bound["theirs"].info_name == "tool"

    def test_typer_may_give_its_own_context(self) -> None:
        def tool(theirs: typer.Context): ...

        given = object()
        assert bind_arguments(call_of(tool, theirs=Converted(given))) == {"theirs": given}

    def test_nobody_else_may(self) -> None:
        def tool(ctx: Context): ...

        assert refused(call_of(tool, ctx="mine")).code == "E1004"


class TestRefusing:
    def test_missing(self) -> None:
        error = refused(call_of(find))
        assert (error.code, error.field) == ("E1002", "pattern")
        assert error.message == "'pattern' is required: text"

    def test_all_at_once(self) -> None:
        error = refused(call_of(find, patern="x", root=3, depth="deep"))
        assert (error.code, error.field) == ("E1004", "patern")
        assert error.message.endswith("(and 2 more)")
        found = [(e["field"], e["code"]) for e in error.details["errors"]]
        assert found == [
            ("patern", "E1004"),
            ("root", "E1003"),
            ("depth", "E1003"),
        ]

    def test_what_a_misspelling_was_meant_to_give_is_not_missing_as_well(self) -> None:
        assert len(refused(call_of(find, patern="x")).details["errors"]) == 1
        assert len(refused(call_of(find, zzzzzzz="x")).details["errors"]) == 2

    def test_a_wrong_default_is_the_tools_own(self) -> None:
        def tool(n: Annotated[int, Option(min=3)] = 1): ...

        assert refused(call_of(tool)).field == "n"

    def test_parts_have_their_place(self) -> None:
        def tool(order: Order): ...

        error = refused(call_of(tool, order={"count": 0}))
        assert [e["field"] for e in error.details["errors"]] == ["order.item", "order.count"]

    def test_what_the_interface_found_comes_first_and_surplus_last(self) -> None:
        interface = (Problem("E1005", None, "too many"), Problem("E1006", "root", "no value"))
        error = refused(call_of(find, problems=interface))
        assert [e["code"] for e in error.details["errors"]] == ["E1006", "E1002", "E1005"]
        assert error.details["errors"][-1] == {"code": "E1005", "message": "too many"}

    def test_order_is_typers(self) -> None:
        """Options as they were typed, then arguments, then what is missing."""

        def tool(a: int, b: Annotated[int, Option()], c: int = 1, d: int = 1): ...

        error = refused(call_of(tool, a="x", d="x", c="x"))
        assert [e["field"] for e in error.details["errors"]] == ["d", "c", "a", "b"]


class TestOneModel:
    """`input_model=`: the fields are the parameters, the function takes the model."""

    def order(self, order: Order, ctx: Context): ...

    def test_fields_become_the_model(self) -> None:
        call = call_of(self.order, text={"input_model": Order}, item="tea", count="2")
        assert call.tool.param_names == {"item", "count"}
        bound = bind_arguments(call)
        assert bound["order"] == Order(item="tea", count=2)
        assert isinstance(bound["ctx"], Context)

    def test_each_field_is_checked(self) -> None:
        error = refused(call_of(self.order, text={"input_model": Order}, count=0))
        assert {e["field"] for e in error.details["errors"]} == {"item", "count"}

    def test_and_how_they_go_together(self) -> None:
        error = refused(call_of(self.order, text={"input_model": Order}, item="cake", count=9))
        assert error.field is None
        assert "too many cakes" in error.message


def test_arguments_with_defaults_of_their_own() -> None:
    def tool(a: Annotated[int, Argument()] = 1, *, b: str | None = None): ...

    assert bind_arguments(call_of(tool)) == {"a": 1, "b": None}
    assert bind_arguments(call_of(tool, b="x")) == {"a": 1, "b": "x"}
