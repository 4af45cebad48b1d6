"""Descriptions of the values that parameters accept."""

from __future__ import annotations

import datetime as dt
import pathlib
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from tests.stable_ids import stable_id

from tooli import Argument, Option, SecretInput, StdinOr
from tooli.core.tool import TyperOnly
from tooli.pipeline.value_descriptions import describe_param, describe_shape
from tooli.schema.tool_reader import infer_shape, read_tool


def describe(annotation: Any, **kwargs: Any) -> str:
    def tool(value): ...

    tool.__annotations__["value"] = annotation
    param = read_tool(tool, app="app", path=("tool",), kwargs={}).params[0]
    return describe_param(param, **kwargs)


@pytest.mark.parametrize(
    ("annotation", "description"),
    [
        (str, "text"),
        (int, "an integer"),
        (float, "a number"),
        (bool, "true or false"),
        (int | None, "an integer"),
        (pathlib.Path, "a path"),
        (Literal["a", "b"], "one of a, b"),
        (list[int], "one or more values, each an integer"),
        (dt.date, "a date (YYYY-MM-DD)"),
        (dt.datetime, "a date and time (YYYY-MM-DDTHH:MM:SS)"),
        (int | str, "an integer or text"),
    ],
    ids=stable_id,
)
def test_shape_of_an_annotation_is_described(annotation, description) -> None:
    assert describe_shape(infer_shape(annotation)) == description


def test_typer_type_is_described_as_a_value() -> None:
    assert describe_shape(TyperOnly(3)) == "a value"


class User(BaseModel):
    name: str
    age: int = Field(3, ge=0, le=150)


@pytest.mark.parametrize(
    ("annotation", "description"),
    [
        (Annotated[int, Option(min=1, max=5)], "an integer from 1 to 5"),
        (Annotated[int, Option(min=1)], "an integer, 1 or more"),
        (Annotated[int, Field(ge=1, le=5)], "an integer from 1 to 5"),
        (Annotated[int, Field(le=5)], "an integer, 5 at most"),
        (Annotated[int | None, Field(gt=0)], "an integer, more than 0"),
        (
            Annotated[float, Field(lt=1, multiple_of=0.5)],
            "a number, less than 1, a multiple of 0.5",
        ),
        (
            Annotated[str, Field(min_length=2, max_length=4, pattern="^a")],
            "text, at least 2 characters, at most 4 characters, matching ^a",
        ),
        (User, "a JSON object {name:str,age?:int(0..150)} (or @file)"),
        (User | None, "a JSON object {name:str,age?:int(0..150)} (or @file)"),
        (list[User], "a JSON list [{name:str,age?:int(0..150)}] (or @file)"),
        (dict[str, int], "a JSON object {str:int} (or @file)"),
        (dict, "a JSON object (or @file)"),
        (Annotated[SecretInput, Option()], "a secret: @FILE, env:NAME, or - for stdin"),
        (StdinOr[str], "a path, a URL, - for stdin, or data through a pipe"),
    ],
    ids=stable_id,
)
def test_parameter_is_described_with_bounds_and_fields(annotation, description) -> None:
    assert describe(annotation) == description


@pytest.mark.parametrize(
    ("annotation", "description"),
    [
        (User, "a JSON object {name:str,age?:int(0..150)}"),
        (SecretInput, "a secret: the value itself, as text"),
        (StdinOr[str], "a path, a URL, or the content"),
        (list[SecretInput], "one or more values, each a secret: the value itself, as text"),
    ],
    ids=stable_id,
)
def test_other_interfaces_have_no_files_or_stdin(annotation, description) -> None:
    assert describe(annotation, is_command_line=False) == description


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, "a path"),
        ({"exists": True}, "the path of an existing file or directory"),
        ({"dir_okay": False}, "the path of a file"),
        ({"exists": True, "file_okay": False}, "the path of an existing directory"),
    ],
    ids=str,
)
def test_allowed_paths_are_described(kwargs: dict[str, bool], expected: str) -> None:
    assert describe(Annotated[pathlib.Path, Argument(**kwargs)]) == expected
