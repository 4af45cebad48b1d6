"""A deferred tool is loaded when a field that is not known is needed, and only then."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.provided import ToolList

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.core.tool import Tool
from tooli.errors import DefinitionError
from tooli.providers import described_tool
from tooli.providers.deferred_tool import DeferredTool, deferred_tool
from tooli.providers.search import format_signature
from tooli.transforms import Arg, Namespace, ToolTransform, Visibility

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
loads: list[str] = []


def load() -> Tool:
    loads.append("load")
    return described_tool("x", double, input_schema=SCHEMA, output_schema={"type": "integer"})


def double(arguments: dict[str, Any]) -> int:
    return arguments["a"] * 2


@pytest.fixture(autouse=True)
def no_loads() -> Iterator[None]:
    loads.clear()
    yield


def make(name: str = "math.double", **options: Any) -> Tool:
    return deferred_tool(
        name, load, description="Double.\n\nMore.", annotations=ReadOnly, **options
    )


def app_of(*tools: Tool, **options: Any) -> Tooli:
    app = Tooli("app")
    app.add_provider(ToolList(*tools), **options)
    return app


def test_lists_load_nothing() -> None:
    app = app_of(make(tags=["t"]), namespace="n", transforms=[Visibility(include_tags=["t"])])
    app.add_transform(Namespace("m"))
    (found,) = app.catalog
    assert (found.key, found.doc.summary, found.behavior.read_only) == (
        "m.n.math.double",
        "Double.",
        True,
    )
    assert isinstance(found, DeferredTool)
    assert not loads


def test_a_call_loads_the_tool_once() -> None:
    app = app_of(make())
    assert app.call("math.double", a=4).result == 8
    assert app.call("math.double", a=5).result == 10
    assert app.call("math.double").error.code == "E1002"
    assert loads == ["load"]


def test_schemas_are_those_of_the_loaded_tool() -> None:
    tool = make()
    assert tool.schema is not None
    assert tool.param_names == {"a"}
    assert tool.guidance.output_schema == {"type": "integer"}
    assert tool.argument_check is None
    assert loads == ["load"]


def test_signature_of_an_outline_loads_nothing() -> None:
    outlines: list[dict[str, Any] | None] = [SCHEMA]
    tool = make(outline=lambda: outlines[0])
    (listed,) = app_of(tool, namespace="n").catalog
    signature = "n.math.double(a: int)  # Double. [read-only]"
    assert format_signature(listed) == signature
    assert not loads
    outlines[0] = None  # it is not valid
    assert format_signature(listed) == signature
    assert loads == ["load"]
    outlines[0] = {"properties": {}}  # it is not needed any more
    assert format_signature(listed) == signature


def test_a_transform_of_the_arguments_loads_it() -> None:
    change = ToolTransform("math.double", args={"a": Arg(value=21, hide=True)})
    app = app_of(make(), transforms=[change])
    assert app.call("math.double").result == 42


def test_copies() -> None:
    tool = make()
    changed = tool.replace(hidden=True, guidance=tool.guidance.replace(tags=("t",)))
    assert (changed.hidden, changed.guidance.tags) == (True, ("t",))
    assert not loads
    assert changed.guidance.output_schema == {"type": "integer"}
    plain = tool.replace(params=())
    assert (type(plain), plain.params, plain.schema) == (Tool, (), tool.schema)
    assert type(tool.guidance.replace(output_schema=None)).__name__ == "Guidance"
    with pytest.raises(AttributeError, match="has no field 'nothing'"):
        _ = tool.nothing  # type: ignore[attr-defined]


def test_a_pickled_guidance_is_a_plain_one() -> None:
    guidance = pickle.loads(pickle.dumps(make().guidance))
    assert type(guidance).__name__ == "Guidance"
    assert guidance.output_schema == {"type": "integer"}


def test_options() -> None:
    tool = make(stops_itself=True, returns_page=True, timeout=3, deprecated="old", version="2.0")
    assert (tool.limits.stops_itself, tool.limits.returns_page, tool.limits.timeout) == (
        True,
        True,
        3,
    )
    assert (tool.deprecated, tool.version) == ("old", "2.0")
    assert deferred_tool("x", load).behavior.destructive
    with pytest.raises(DefinitionError):
        make(tiemout=3)
