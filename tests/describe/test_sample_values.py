"""Sample values: the tool itself accepts them."""

from __future__ import annotations

import datetime
import enum
import ipaddress
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from annotated_types import Ge, Gt, Le, Len, Lt, MultipleOf
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, StringConstraints
from tests.parity import sample_apps

from tooli import Tooli
from tooli.describe.calls import sample_arguments
from tooli.describe.sample_values import sample_argv, sample_value, sample_values
from tooli.describe.sections import collect_app_info
from tooli.testing import check_line

TEXT, WHOLE, REF_A = {"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/A"}
TREE = {
    "$ref": "#/$defs/A",
    "$defs": {
        "A": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": REF_A}},
            "required": ["children"],
        }
    },
}

_WITH_CALLBACK = ("checked",)  # the callback of its parameter rejects sample values


@pytest.mark.parametrize(
    "make",
    [sample_apps.make_app, sample_apps.make_single_command_app, sample_apps.make_callback_app],
)
@pytest.mark.parametrize("every", [True, False])
def test_sample_arguments_are_accepted(make: Any, every: bool) -> None:
    app: Tooli = make()
    wrong: list[str] = []
    for tool in collect_app_info(app).tools:
        argv = list(tool.cli_path)
        for param in tool.command_params:
            if (param.required or every) and not param.is_flag:
                argv += [*param.flags[:1], *sample_argv(param)]
        if tool.key not in _WITH_CALLBACK:
            wrong += [f"{argv}: {problem}" for problem in check_line(app, argv)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMaximum": 1}, 0),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "integer", "multipleOf": 5}, 5),
        ({"type": "integer", "maximum": 13, "minimum": 6, "multipleOf": 5}, 10),
        ({"type": "integer", "maximum": -3, "multipleOf": 5}, -5),
        ({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 5}, 10),
        ({"type": "number", "multipleOf": 0.25, "maximum": 0.5}, 0.25),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "string", "minLength": 6}, "TEXTXX"),
        ({"type": "string", "maxLength": 2}, "TE"),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}, [True]),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 3}, 3),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"anyOf": [{"type": "null"}]}, None),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "required": ["b"]}}}, {"b": "B"}),
        ({}, "TEXT"),
        ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}, "AA-0"),
        ({"type": "string", "pattern": "^[a-z]*$"}, "a"),
        ({"type": "string", "pattern": "^[a-z]+$", "minLength": 3}, "aaa"),
        ({"type": "string", "pattern": "^a", "minLength": 3, "maxLength": 3}, "aXX"),
        ({"type": "string", "pattern": r"^(?=.*[0-9])(?=.*[A-Z]).{8,}$"}, "Abcdefg-12!"),
        ({"type": "string", "pattern": "["}, "TEXT"),
        ({"type": "number", "multipleOf": 0.1, "minimum": 0.25}, 0.3),
        ({"type": "number", "multipleOf": 0.1, "minimum": 0.25, "maximum": 0.35}, 0.3),
        ({"type": "array", "items": WHOLE, "minItems": 2, "uniqueItems": True}, [1, 2]),
        ({"type": "array", "items": TEXT, "minItems": 2, "uniqueItems": True}, ["TEXT", "TEXT1"]),
        ({"type": "array", "items": WHOLE, "maxItems": 0}, []),
        ({"type": "object", "minProperties": 2}, {"KEY": "VALUE", "KEY1": "VALUE"}),
        ({"allOf": [{"type": "integer"}, {"minimum": 4}]}, 4),
        ({"type": "string", "contentSchema": {"type": "array", "items": WHOLE}}, "[1]"),
        (TREE, {"children": []}),
        (
            {
                "$defs": {"A": WHOLE},
                "type": "object",
                "properties": {"a": REF_A},
                "required": ["a"],
            },
            {"a": 1},
        ),
    ],
)
def test_sample_values(schema: dict[str, Any], value: Any) -> None:
    assert sample_value(schema) == value


def test_later_samples_differ() -> None:
    texts = list(sample_values({"type": "string", "examples": ["z"]}, "NAME"))
    assert texts[:3] == ["NAME", "z", "name"]
    assert len(texts) == len(set(texts))


# ------------------------------------------------------------------ accepted by the tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tag: Annotated[str, StringConstraints(pattern="^D-[0-9]{4}$")]


class Node(BaseModel):
    name: str
    children: list[Node]
    parent: Node | None


class Nested(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    when: datetime.date
    colors: Annotated[set[Color], Len(2)]
    codes: dict[Annotated[str, StringConstraints(pattern="^[a-z]$")], int]


def _must_be_even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


def _must_be_lower(value: str) -> str:
    if value != value.lower():
        raise ValueError("must be lower case")
    return value


def is_accepted(annotation: Any) -> tuple[list[str], list[str]]:
    """Return the sample of a required parameter, and what the app says about it."""

    def run(value: Any) -> None: ...

    run.__annotations__["value"] = annotation
    app = Tooli("one")
    app.command("run")(run)
    app.command("other")(lambda: None)
    tool = app.find("run")
    assert tool is not None
    argv = sample_arguments(tool)
    return argv, check_line(app, ["run", *argv])


@pytest.mark.parametrize(
    "annotation",
    [
        *(UUID, Decimal, bytes, Color, HttpUrl, Node, Nested, Cat | Dog),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
        *(ipaddress.IPv4Address, ipaddress.IPv6Network, ipaddress.IPv4Interface),
        Annotated[int, AfterValidator(_must_be_even)],
        Annotated[str, AfterValidator(_must_be_lower)],
        Annotated[str, StringConstraints(pattern="^[a-z]+$", min_length=5, max_length=6)],
        Annotated[str, StringConstraints(to_upper=True, max_length=2)],
        Annotated[Decimal, Field(max_digits=4, decimal_places=2, gt=0, lt=1)],
        Annotated[float, Field(gt=0, lt=0.001)],
        Annotated[datetime.date, Ge(datetime.date(2020, 1, 1))],
        Annotated[list[Annotated[int, Ge(7)]], Len(3, 4)],
        Annotated[set[int], Len(2)],
        Annotated[dict[str, int], Len(2)],
        tuple[int, Annotated[str, StringConstraints(pattern="^x")]],
        list[Nested],
        dict[str, list[Cat]],
        *(list[tuple[int, str]], Annotated[list[list[int]], Len(2)]),
        int | UUID,
        Annotated[int, MultipleOf(5), Gt(5)] | None,
    ],
)
def test_sample_is_accepted(annotation: Any) -> None:
    argv, problems = is_accepted(annotation)
    assert problems == [], argv


def integers() -> st.SearchStrategy[Any]:
    def build(low: int, size: int, step: int, closed: bool) -> Any:
        high = low + size + 2 * step
        bounds = (Ge(low), Le(high)) if closed else (Gt(low), Lt(high))
        return Annotated[int, bounds[0], bounds[1], MultipleOf(step)]

    return st.builds(
        build, st.integers(-50, 50), st.integers(0, 9), st.integers(1, 12), st.booleans()
    )


def texts() -> st.SearchStrategy[Any]:
    def build(pattern: str | None, fewest: int, extra: int) -> Any:
        return Annotated[
            str, StringConstraints(pattern=pattern, min_length=fewest, max_length=fewest + extra)
        ]

    patterns = st.sampled_from([None, "^[a-z]+$", "^A", "^[0-9a-f]+$", r"^\S+$", "^(x|yy)"])
    return st.builds(build, patterns, st.integers(1, 12), st.integers(0, 5))


LEAVES = st.one_of(
    integers(),
    texts(),
    st.sampled_from([str, int, float, bool, UUID, Decimal, Color, datetime.date, datetime.time]),
    st.sampled_from([datetime.datetime, datetime.timedelta, Literal["a", "b"], Cat, Nested]),
)


def containers(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda kind: list[kind], item),
        st.builds(lambda kind: dict[str, kind], item),
        st.builds(lambda left, right: tuple[left, right], item, item),
    )


def annotations() -> st.SearchStrategy[Any]:
    """Return the types of parameters. Lists with limits are outside of all other containers.

    A command line cannot give a list with limits inside a list or an Optional.
    """
    values = st.recursive(LEAVES, containers, max_leaves=4)
    limits = st.integers(1, 3)
    return st.one_of(
        values,
        st.builds(lambda kind: kind | None, LEAVES),
        st.builds(lambda kind, size: Annotated[list[kind], Len(size, size + 1)], values, limits),
    )


@settings(
    max_examples=40,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # an example is small already
    suppress_health_check=list(HealthCheck),
)
@given(annotations())
def test_sample_of_every_type_is_accepted(annotation: Any) -> None:
    argv, problems = is_accepted(annotation)
    assert problems == [], argv
