"""JSON Schema of parameters and results: as pydantic's, without titles and references."""
# ruff: noqa: UP045  both ways to spell an optional are read

import collections.abc as cabc
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import subprocess
import sys
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, Optional

import jsonschema
import pydantic
import pytest
import typer
import typing_extensions
from tests.shown import shown

from tooli import Argument, Context, Option, Tooli
from tooli.core.tool import MISSING, Injected
from tooli.records.fields import RecordFields, allowed_values, json_types, parse_path
from tooli.schema import pydantic_bridge
from tooli.schema.json_schema import (
    _NeedsPydantic,
    approximate_schema,
    input_schema,
    output_schema,
    result_schema,
    shape_schema,
)
from tooli.schema.pydantic_bridge import get_type_adapter
from tooli.schema.tool_reader import read_tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    NUMBER = 1
    WORD = "x"


class Pair(enum.Enum):
    ONE = (1, 2)


class Lone(enum.Enum):
    ONLY = "only"


@dataclasses.dataclass
class Size:
    width: int
    height: Optional[int] = None


class Address(pydantic.BaseModel):
    title: str = "Home"
    street: str


class User(pydantic.BaseModel):
    """Somebody."""

    name: str = pydantic.Field(description="who it is", min_length=1)
    address: Address
    default: Address = Address(title="Mr", street="x")
    more: dict[str, Any] = {"title": "kept"}
    friends: list[Address] = []


class Node(pydantic.BaseModel):
    value: int
    below: list["Node"] = []


class Tree(pydantic.BaseModel):
    root: Node
    other: Optional[Node] = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Keys(typing.TypedDict, total=False):
    a: typing_extensions.Required[int]
    b: str


class Holder(typing.TypedDict):
    keys: list[Keys]
    more: Optional[Keys]
    either: Keys | int


class Row(NamedTuple):
    a: int
    b: str = "x"


def read(fn, **settings):
    return read_tool(fn, app="app", path=("tool",), kwargs=settings)


def schema_of(annotation: Any, default: Any = MISSING) -> dict[str, Any]:
    """Return the schema of one parameter."""
    fn = (lambda x: None) if default is MISSING else (lambda x=default: None)
    fn.__annotations__["x"] = annotation
    return check(input_schema(read(fn)))["properties"]["x"]


def check(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, if JSON Schema's own schema likes it."""
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def bare(node: Any) -> Any:
    """Pydantic's schema as ours would be: no titles, no references, no class docstrings."""
    from tooli.schema.json_schema import inline_references

    return inline_references({k: v for k, v in node.items() if k != "$defs"}, node.get("$defs", {}))


PLAIN = [
    *(str, int, float, bool, pathlib.Path, Colour, Level, Odd, Lone),
    *(Literal["a", "b"], Literal["a"], Literal[1, 2], Literal[1, "b"]),
    *(list, tuple, set, frozenset, dict, Optional[list], Optional[dict]),
    *(list[int], set[str], frozenset[int], tuple[int, ...], tuple[int, str], list[Colour]),
    *(Optional[int], int | None, Optional[Colour], Optional[list[str]]),
    *(cabc.Sequence[int], cabc.Iterable[str]),
    *(dict[str, int], dict[str, Any], dict[str, object], dict[str, Colour]),
]
RICH = [
    *(dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID, bytes),
    *(int | str, int | str | None, Any, Size, Row, User, list[User], Optional[Size]),
    *(
        Pair,
        Literal[True],
        Literal[None, "b"],
        list[list[int]],
        list[Optional[int]],
        tuple[list, None],
    ),
    *(dict[int, str], dict[str, list[int]], cabc.Mapping[str, int], pydantic.HttpUrl),
    Annotated[int, pydantic.Field(gt=3, le=9)],
    Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
]


class TestEqualToPydantic:
    @pytest.mark.parametrize("annotation", [*PLAIN, *RICH], ids=shown)
    def test_as_a_parameter(self, annotation: Any) -> None:
        assert schema_of(annotation) == bare(pydantic.TypeAdapter(annotation).json_schema())

    @pytest.mark.parametrize("annotation", [*PLAIN, *RICH], ids=shown)
    def test_as_a_result(self, annotation: Any) -> None:
        def tool(): ...

        tool.__annotations__["return"] = annotation
        wanted = pydantic.TypeAdapter(annotation).json_schema(mode="serialization")
        assert check(output_schema(read(tool))) == bare(wanted)

    @pytest.mark.parametrize("annotation", PLAIN, ids=shown)
    def test_plain_types_need_no_pydantic(self, annotation: Any, monkeypatch) -> None:
        from tooli.schema import pydantic_bridge

        monkeypatch.setattr(pydantic_bridge, "get_type_adapter", None)
        assert schema_of(annotation)


class TestDecimal:
    def test_the_text_of_a_decimal_is_reported(self) -> None:
        class Priced(pydantic.BaseModel):
            price: decimal.Decimal
            free: Annotated[decimal.Decimal, pydantic.Field(allow_inf_nan=True)]

        for kind in (decimal.Decimal, Optional[decimal.Decimal], list[decimal.Decimal], Priced):
            schema = schema_of(kind)
            for text in ("1", "-1.50", "+.5", "5.", "1E-7", "1e+400", "0" * 50 + "1"):
                value = {"price": text, "free": "NaN"} if kind is Priced else text
                value = [value] if "items" in schema else value
                assert accepts(schema, value), (kind, text)
                assert get_type_adapter(kind).validate_python(value)
            for text in ("", "x", "NaN", "inf", ".", "1.2.3", "e5", "1e", "0x1", "1,5"):
                value = {"price": text, "free": "1"} if kind is Priced else text
                value = [value] if "items" in schema else value
                assert not accepts(schema, value), (kind, text)

    def test_a_number_is_a_number(self) -> None:
        schema = schema_of(Annotated[decimal.Decimal, pydantic.Field(ge=2)])
        assert accepts(schema, 2.5)
        assert not accepts(schema, 1)

    def test_as_a_result_it_is_text(self) -> None:
        def tool() -> decimal.Decimal: ...

        assert output_schema(read(tool))["type"] == "string"


class TestTypedDict:
    def test_typings_own_on_any_python(self) -> None:
        assert schema_of(Keys) == {
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "required": ["a"],
            "type": "object",
        }

    def test_inside_others(self) -> None:
        schema = schema_of(list[Holder])["items"]["properties"]
        assert schema["keys"]["items"]["required"] == ["a"]
        assert [part.get("type") for part in schema["more"]["anyOf"]] == ["object", "null"]
        assert [part.get("type") for part in schema["either"]["anyOf"]] == ["object", "integer"]

    @pytest.mark.parametrize(
        "kind", [Keys, list[Holder], Optional[Keys], dict[str, Keys]], ids=shown
    )
    def test_what_older_pythons_need_means_the_same_on_newer_ones(self, kind: Any) -> None:
        assert (
            get_type_adapter(pydantic_bridge._upgrade_typed_dicts(kind)).json_schema()
            == get_type_adapter(kind).json_schema()
        )


class TestParameters:
    def test_the_object(self) -> None:
        def tool(a: int, b: str = "x", *, c: bool = False): ...

        assert input_schema(read(tool)) == {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "string", "default": "x"},
                "c": {"type": "boolean", "default": False},
            },
            "required": ["a"],
            "additionalProperties": False,
        }

    def test_nothing(self) -> None:
        assert input_schema(read(lambda: None)) == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }

    def test_what_is_injected_is_in_no_schema(self) -> None:
        def tool(a: int, ours: Context, theirs: typer.Context): ...

        assert input_schema(read(tool))["properties"].keys() == {"a"}
        assert shape_schema(Injected("context")) == {}

    @pytest.mark.parametrize(
        ("annotation", "default", "wanted"),
        [
            (int, 3, 3),
            (Colour, Colour.RED, "red"),
            (pathlib.Path, pathlib.Path("a/b"), "a/b"),
            (Optional[int], None, None),
            (list[int], [1, 2], [1, 2]),
            (set[int], {2, 1}, [1, 2]),
            (dt.date, dt.date(2024, 1, 2), "2024-01-02"),
            (bool, False, False),
            (int, 0, 0),
            (str, "", ""),
            (User, User(name="a", address=Address(street="b")), MISSING),
        ],
        ids=shown,
    )
    def test_defaults_are_json(self, annotation, default, wanted) -> None:
        found = schema_of(annotation, default).get("default", MISSING)
        if wanted is MISSING:
            assert found["name"] == "a"
        else:
            assert found == wanted

    @pytest.mark.parametrize("default", [object(), float("nan")], ids=["object", "nan"])
    def test_a_default_that_json_cannot_hold_is_left_out(self, default) -> None:
        assert "default" not in schema_of(Any, default)

    def test_none_for_a_parameter_that_is_not_optional(self) -> None:
        assert schema_of(int, None) == {"type": "integer"}

    def test_a_factory_is_not_called(self) -> None:
        annotation = Annotated[int, Option(default_factory=lambda: 1 / 0)]
        assert schema_of(annotation) == {"type": "integer"}

    @pytest.mark.parametrize(
        ("annotation", "place"),
        [
            (int, lambda s: s),
            (float, lambda s: s),
            (Optional[int], lambda s: s["anyOf"][0]),
            (list[int], lambda s: s["items"]),
        ],
    )
    def test_bounds(self, annotation, place) -> None:
        schema = schema_of(Annotated[annotation, Option(min=1, max=9)])
        found = place(schema)
        assert (found["minimum"], found["maximum"]) == (1, 9)

    def test_one_bound(self) -> None:
        assert schema_of(Annotated[int, Option(min=0)]) == {"type": "integer", "minimum": 0}

    def test_a_clamped_number_takes_any(self) -> None:
        assert schema_of(Annotated[int, Option(min=1, clamp=True)]) == {"type": "integer"}

    def test_bounds_of_what_is_no_number(self) -> None:
        assert schema_of(Annotated[str, Option(min=1)]) == {"type": "string"}

    def test_pydantics_own_words_stay(self) -> None:
        field = pydantic.Field(gt=3, description="a few", examples=[4])
        schema = schema_of(Annotated[int, field, Argument()])
        assert schema == {
            "type": "integer",
            "exclusiveMinimum": 3,
            "description": "a few",
            "examples": [4],
        }

    def test_a_parser_takes_text(self) -> None:
        assert schema_of(Annotated[complex, Option(parser=complex)]) == {"type": "string"}

    def test_typers_files_are_paths(self) -> None:
        assert schema_of(typer.FileText) == {"type": "string", "format": "path"}
        assert shape_schema(read(lambda x=print: 0).params[0].shape) == {}


GOOGLE = """Do it.

Args:
    size: how big it is
    other: something else
"""
NUMPY = """Do it.

Parameters
----------
size : int
    how big it is
"""
SPHINX = """Do it.

:param size: how big it is
"""


class TestDescriptions:
    @pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
    def test_from_the_docstring(self, text: str) -> None:
        def tool(size: int): ...

        tool.__doc__ = text
        found = input_schema(read(tool))["properties"]["size"]
        assert found == {"type": "integer", "description": "how big it is"}

    def test_help_wins(self) -> None:
        def tool(size: Annotated[int, Option(help="the size")] = 3): ...

        tool.__doc__ = GOOGLE
        assert input_schema(read(tool))["properties"]["size"]["description"] == "the size"


class TestReferences:
    def test_nested_models_stand_in_place(self) -> None:
        schema = schema_of(User)
        assert "$defs" not in schema
        assert "$ref" not in schema["properties"]["address"]
        assert schema["properties"]["address"]["properties"].keys() == {"title", "street"}
        assert schema["properties"]["friends"]["items"] == schema["properties"]["address"]

    def test_data_that_looks_like_a_schema_stays_data(self) -> None:
        schema = schema_of(User)
        assert schema["properties"]["more"]["default"] == {"title": "kept"}
        assert schema["properties"]["default"]["default"] == {"title": "Mr", "street": "x"}

    def test_a_mapping_of_references_goes(self) -> None:
        schema = schema_of(Annotated[Cat | Dog, pydantic.Field(discriminator="kind")])
        assert schema["discriminator"] == {"propertyName": "kind"}
        assert "$defs" not in repr(schema)

    def test_what_contains_itself_keeps_a_reference(self) -> None:
        def tool(a: Node, b: Tree, c: Optional[list[Node]] = None): ...

        schema = check(input_schema(read(tool)))
        assert schema["properties"]["a"] == {"$ref": "#/$defs/Node"}
        assert schema["$defs"].keys() == {"Node"}
        good = {"value": 1, "below": [{"value": 2, "below": [{"value": 3}]}]}
        bad = {"value": 1, "below": [{"value": 2, "below": [{"value": "three"}]}]}
        assert accepts(schema, {"a": good, "b": {"root": good, "other": None}, "c": [good]})
        assert not accepts(schema, {"a": bad, "b": {"root": good}})
        assert not accepts(schema, {"a": good, "b": {"root": good, "other": bad}})

    def test_a_recursive_result(self) -> None:
        def tool() -> list[Tree]: ...

        schema = check(output_schema(read(tool)))
        assert accepts(schema, [{"root": {"value": 1, "below": []}, "other": None}])
        assert not accepts(schema, [{"root": {"value": "x", "below": []}, "other": None}])


class TestInstances:
    @pytest.mark.parametrize(
        ("annotation", "good", "bad"),
        [
            (Colour, ["red"], ["green", 1]),
            (Level, [1], ["1", 3]),
            (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2], ["a", 1]]),
            (set[int], [[1, 2]], [[1, 1]]),
            (Optional[int], [None, 1], ["x"]),
            (User, [{"name": "a", "address": {"street": "b"}}], [{"name": "", "address": {}}, {}]),
            (list[Size], [[{"width": 1}]], [[{"height": 1}], {"width": 1}]),
            (dict[str, int], [{"a": 1}], [{"a": "x"}]),
            (Annotated[int, Option(min=1, max=3)], [1, 3], [0, 4]),
        ],
        ids=shown,
    )
    def test_the_schema_means_what_it_says(self, annotation, good, bad) -> None:
        schema = schema_of(annotation)
        assert [accepts(schema, value) for value in good] == [True] * len(good)
        assert [accepts(schema, value) for value in bad] == [False] * len(bad)


class TestResults:
    @pytest.mark.parametrize("nothing", [MISSING, None, type(None), "None"])
    def test_none_declared(self, nothing) -> None:
        def tool(): ...

        if nothing is not MISSING:
            tool.__annotations__["return"] = nothing
        assert output_schema(read(tool)) is None

    @pytest.mark.parametrize(
        "annotation",
        [
            cabc.Iterator[int],
            cabc.Generator[int, None, str],
            cabc.Iterable[int],
            cabc.AsyncIterator[int],
            cabc.AsyncGenerator[int, None],
            typing.Iterator[int],
            list[int],
        ],
        ids=shown,
    )
    def test_a_stream_is_a_list_of_its_items(self, annotation) -> None:
        def tool(): ...

        tool.__annotations__["return"] = annotation
        assert output_schema(read(tool)) == {"type": "array", "items": {"type": "integer"}}

    def test_a_result_that_says_nothing_of_its_items(self) -> None:
        def tool() -> list: ...

        assert output_schema(read(tool)) == {"type": "array", "items": {}}

    def test_a_class_that_pydantic_cannot_describe(self) -> None:
        class Engine: ...

        def tool() -> Engine: ...

        assert output_schema(read(tool)) == {}

    def test_described_once(self) -> None:
        """A return annotation that is text is a new object each time it is read."""
        from tooli.schema.pydantic_bridge import _adapters

        def tool() -> "list[Size]": ...

        made = read(tool)
        output_schema(made)
        before = len(_adapters)
        assert output_schema(made) is output_schema(made)
        assert len(_adapters) == before


def test_every_command_of_an_app_has_a_valid_schema() -> None:
    app = Tooli("app")
    for i, annotation in enumerate([*PLAIN, *RICH, Keys, Holder, Node, Tree]):

        def tool(x, y=None): ...

        tool.__annotations__ |= {"x": annotation, "y": Optional[annotation], "return": annotation}
        app.command(f"tool-{i}")(tool)
    for tool in app.catalog:
        check(input_schema(tool))
        check(output_schema(tool))


# ------------------------------------------------------------------ approximate schemas


class Owner(typing_extensions.TypedDict, total=False):
    name: str
    age: int | None


@dataclasses.dataclass
class FileRecord:
    n: int
    path: pathlib.Path
    day: dt.date
    price: decimal.Decimal
    ratio: float
    done: bool
    color: Colour
    kind: Literal["a", "b"] | None
    tags: list[str]
    owner: Owner
    owners: list[Owner]
    counts: dict[str, int]
    more: dict[str, Any]


class NestedRecord(typing_extensions.TypedDict):
    name: str
    inner: list["NestedRecord"]


class RecordModel(pydantic.BaseModel):
    n: int


FIELD_PATHS = [
    *("n", "path", "day", "price", "ratio", "done", "color", "kind", "tags", "tags[0]", "owner"),
    *("owner.name", "owner.age", "owners.age", "owners[0].name", "counts.x", "more.x.y"),
]


@pytest.mark.parametrize("path", FIELD_PATHS)
def test_approximate_schema_agrees_with_the_full_schema(path: str) -> None:
    approximate, full = (
        RecordFields(approximate_schema(list[FileRecord])),
        RecordFields(result_schema(list[FileRecord])),
    )
    mine, theirs = approximate.schemas_at(parse_path(path)), full.schemas_at(parse_path(path))
    assert json_types(mine) == json_types(theirs)
    assert allowed_values(mine) == allowed_values(theirs)


@pytest.mark.parametrize(
    "annotation", [cabc.Iterator[FileRecord], list[Owner], list[int], dict[str, int]]
)
def test_plain_types_have_an_approximate_schema(annotation: Any) -> None:
    assert approximate_schema(annotation) is not None


@pytest.mark.parametrize(
    "annotation", [list[NestedRecord], list[RecordModel], list[int | str], RecordModel]
)
def test_other_types_need_pydantic(annotation: Any) -> None:
    with pytest.raises(_NeedsPydantic):
        approximate_schema(annotation)


def test_filter_of_plain_records_does_not_load_pydantic(tmp_path: pathlib.Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "import sys\n"
        "from typing import TypedDict\n"
        "from tooli import Tooli\n"
        "app = Tooli('app')\n"
        "class Row(TypedDict):\n    n: int\n"
        "@app.command()\n"
        "def rows() -> list[Row]:\n    return [Row(n=i) for i in range(3)]\n"
        "try:\n    app()\n"
        "finally:\n    print('pydantic' in sys.modules, 'json' in sys.modules, file=sys.stderr)\n"
    )
    words = [sys.executable, str(app), "--filter", "n > 1", "--select", "n", "--limit", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert '"result":[{"n":2}]' in done.stdout
    assert done.stderr == "False False\n"
    wrong = subprocess.run([*words, "--filter", "m > 1"], capture_output=True, text=True)
    assert "E1040" in wrong.stdout
