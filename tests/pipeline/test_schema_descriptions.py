"""Fields and bounds of parameters, from their JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from tooli.pipeline.schema_descriptions import describe_json, read_bounds
from tooli.schema.tool_reader import read_tool


class Row(BaseModel):
    size: int = Field(ge=1)


def param_of(annotation: Any) -> Any:
    def tool(value): ...

    tool.__annotations__["value"] = annotation
    return read_tool(tool, app="app", path=("tool",), kwargs={}).params[0]


def test_bounds_of_a_list_are_those_of_its_items() -> None:
    param = param_of(list[Annotated[int, Field(le=9)]] | None)
    assert read_bounds(param)["maximum"] == 9


def test_bounds_of_an_optional_value_are_found() -> None:
    assert read_bounds(param_of(Annotated[int | None, Field(gt=2)]))["exclusiveMinimum"] == 2


def test_object_is_described_with_its_fields() -> None:
    assert describe_json(param_of(Row), False) == "a JSON object {size:int(1..)}"
    assert describe_json(param_of(list[Row]), True) == "a JSON list [{size:int(1..)}] (or @file)"
