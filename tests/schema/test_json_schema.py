"""JSON Schema of parameters and results: as pydantic's, without titles and references."""
# ruff: noqa: UP006, UP045  both ways to spell an optional are read

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
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional

import jsonschema
import pydantic
import pytest
import typer
import typing_extensions
from tests.stable_ids import stable_id

from tooli import Argument, Context, Option, Tooli
from tooli.core.tool import MISSING, Injected
from tooli.records.fields import RecordFields, allowed_values, json_types, parse_path
from tooli.schema import pydantic_bridge
from tooli.schema.convert_values import convert_value
from tooli.schema.json_schema import (
    _NeedsPydantic,
    approximate_schema,
    input_schema,
    output_schema,
    result_schema,
    shape_schema,
)
from tooli.schema.pydantic_bridge import get_type_adapter
from tooli.schema.tool_reader import read_param, read_tool


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


def read(fn, **kwargs):
    return read_tool(fn, app="app", path=("tool",), kwargs=kwargs)


def schema_of(annotation: Any, default: Any = MISSING) -> dict[str, Any]:
    """Return the schema of one parameter."""
    fn = (lambda x: None) if default is MISSING else (lambda x=default: None)
    fn.__annotations__["x"] = annotation
    return check(input_schema(read(fn)))["properties"]["x"]


def check(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema, if it is a valid JSON Schema."""
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def normalize(node: Any) -> Any:
    """Return a schema of pydantic without titles and references."""
    from tooli.schema.json_schema import inline_references

    return inline_references({k: v for k, v in node.items() if k != "$defs"}, node.get("$defs", {}))


PLAIN = [
    *(str, int, float, bool, pathlib.Path, Colour, Level, Odd, Lone),
    *(Literal["a", "b"], Literal["a"], Literal[1, 2], Literal[1, "b"]),
    *(list, tuple, set, frozenset, dict, Optional[list], Optional[dict]),
    *(list[int], set[str], frozenset[int], tuple[int, ...], tuple[int, str], list[Colour]),
    *(Optional[int], int | None, Optional[Colour], Optional[list[str]]),
    *(cabc.Sequence[int], cabc.Iterable[str]),
    *(None | list, typing.List, Optional[typing.Set], cabc.Sequence, NewType("Ids", list[int])),
    NewType("MaybeId", Optional[int]),
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
    @pytest.mark.parametrize("annotation", [*PLAIN, *RICH], ids=stable_id)
    def test_parameter_schema_equals_that_of_pydantic(self, annotation: Any) -> None:
        assert schema_of(annotation) == normalize(pydantic.TypeAdapter(annotation).json_schema())

    @pytest.mark.parametrize("annotation", [*PLAIN, *RICH], ids=stable_id)
    def test_result_schema_equals_that_of_pydantic(self, annotation: Any, monkeypatch) -> None:
        """A result has every field, as with pydantic's option for required defaults."""
        option = "json_schema_serialization_defaults_required"
        monkeypatch.setattr(pydantic._internal._config.ConfigWrapper, option, True, raising=False)

        def tool(): ...

        tool.__annotations__["return"] = annotation
        expected = pydantic.TypeAdapter(annotation).json_schema(mode="serialization")
        assert check(output_schema(read(tool))) == normalize(expected)

    @pytest.mark.parametrize("annotation", PLAIN, ids=stable_id)
    def test_plain_types_need_no_pydantic(self, annotation: Any, monkeypatch) -> None:
        from tooli.schema import pydantic_bridge

        monkeypatch.setattr(pydantic_bridge, "get_type_adapter", None)
        assert schema_of(annotation)


class TestDecimal:
    def test_decimal_as_text_has_a_pattern(self) -> None:
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

    def test_decimal_as_a_number_keeps_its_bounds(self) -> None:
        schema = schema_of(Annotated[decimal.Decimal, pydantic.Field(ge=2)])
        assert accepts(schema, 2.5)
        assert not accepts(schema, 1)

    def test_decimal_in_a_result_is_text(self) -> None:
        def tool() -> decimal.Decimal: ...

        assert output_schema(read(tool))["type"] == "string"


class TestTypedDict:
    def test_typed_dict_of_typing_has_an_object_schema(self) -> None:
        assert schema_of(Keys) == {
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "required": ["a"],
            "type": "object",
        }

    def test_typed_dict_inside_other_types_has_an_object_schema(self) -> None:
        schema = schema_of(list[Holder])["items"]["properties"]
        assert schema["keys"]["items"]["required"] == ["a"]
        assert [part.get("type") for part in schema["more"]["anyOf"]] == ["object", "null"]
        assert [part.get("type") for part in schema["either"]["anyOf"]] == ["object", "integer"]

    @pytest.mark.parametrize(
        "kind", [Keys, list[Holder], Optional[Keys], dict[str, Keys]], ids=stable_id
    )
    def test_upgraded_typed_dict_has_the_same_schema(self, kind: Any) -> None:
        assert (
            get_type_adapter(pydantic_bridge._upgrade_typed_dicts(kind)).json_schema()
            == get_type_adapter(kind).json_schema()
        )


class TestParameters:
    def test_input_schema_is_an_object_of_all_parameters(self) -> None:
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

    def test_schema_without_parameters_allows_no_properties(self) -> None:
        assert input_schema(read(lambda: None)) == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }

    def test_injected_parameters_are_left_out(self) -> None:
        def tool(a: int, ours: Context, theirs: typer.Context): ...

        assert input_schema(read(tool))["properties"].keys() == {"a"}
        assert shape_schema(Injected("context")) == {}

    @pytest.mark.parametrize(
        ("annotation", "default", "expected"),
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
        ids=stable_id,
    )
    def test_defaults_are_json(self, annotation, default, expected) -> None:
        found = schema_of(annotation, default).get("default", MISSING)
        if expected is MISSING:
            assert found["name"] == "a"
        else:
            assert found == expected

    @pytest.mark.parametrize("default", [object(), float("nan")], ids=["object", "nan"])
    def test_default_that_is_not_json_is_left_out(self, default) -> None:
        assert "default" not in schema_of(Any, default)

    def test_default_none_of_a_type_without_none_is_left_out(self) -> None:
        assert schema_of(int, None) == {"type": "integer"}

    def test_default_factory_is_not_called(self) -> None:
        annotation = Annotated[int, Option(default_factory=lambda: 1 / 0)]
        assert schema_of(annotation) == {"type": "integer"}

    @pytest.mark.parametrize(
        ("annotation", "locate"),
        [
            (int, lambda s: s),
            (float, lambda s: s),
            (Optional[int], lambda s: s["anyOf"][0]),
            (list[int], lambda s: s["items"]),
            (Optional[list[int]], lambda s: s["anyOf"][0]["items"]),
            (tuple[str, int], lambda s: s["prefixItems"][1]),
        ],
    )
    def test_min_and_max_become_minimum_and_maximum(self, annotation, locate) -> None:
        schema = schema_of(Annotated[annotation, Option(min=1, max=9)])
        found = locate(schema)
        assert (found["minimum"], found["maximum"]) == (1, 9)

    def test_min_alone_becomes_minimum(self) -> None:
        assert schema_of(Annotated[int, Option(min=0)]) == {"type": "integer", "minimum": 0}

    def test_clamped_number_has_no_bounds(self) -> None:
        assert schema_of(Annotated[int, Option(min=1, clamp=True)]) == {"type": "integer"}

    def test_bounds_of_text_are_ignored(self) -> None:
        assert schema_of(Annotated[str, Option(min=1)]) == {"type": "string"}

    def test_bounds_of_a_union_are_ignored(self) -> None:
        """The conversion does not check them either."""
        annotation = Annotated[int | str, Option(min=1)]
        assert schema_of(annotation) == schema_of(int | str)
        assert convert_value(read_param("x", annotation, MISSING), 0) == 0

    def test_pydantic_metadata_is_kept(self) -> None:
        field = pydantic.Field(gt=3, description="a few", examples=[4])
        schema = schema_of(Annotated[int, field, Argument()])
        assert schema == {
            "type": "integer",
            "exclusiveMinimum": 3,
            "description": "a few",
            "examples": [4],
        }

    def test_parameter_with_a_parser_takes_text(self) -> None:
        assert schema_of(Annotated[complex, Option(parser=complex)]) == {"type": "string"}

    def test_file_types_of_typer_are_paths(self) -> None:
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
    def test_parameter_description_comes_from_the_docstring(self, text: str) -> None:
        def tool(size: int): ...

        tool.__doc__ = text
        found = input_schema(read(tool))["properties"]["size"]
        assert found == {"type": "integer", "description": "how big it is"}

    def test_help_of_the_option_takes_precedence(self) -> None:
        def tool(size: Annotated[int, Option(help="the size")] = 3): ...

        tool.__doc__ = GOOGLE
        assert input_schema(read(tool))["properties"]["size"]["description"] == "the size"


class TestReferences:
    def test_nested_models_are_inlined(self) -> None:
        schema = schema_of(User)
        assert "$defs" not in schema
        assert "$ref" not in schema["properties"]["address"]
        assert schema["properties"]["address"]["properties"].keys() == {"title", "street"}
        assert schema["properties"]["friends"]["items"] == schema["properties"]["address"]

    def test_defaults_that_look_like_schemas_are_unchanged(self) -> None:
        schema = schema_of(User)
        assert schema["properties"]["more"]["default"] == {"title": "kept"}
        assert schema["properties"]["default"]["default"] == {"title": "Mr", "street": "x"}

    def test_discriminator_mapping_is_removed(self) -> None:
        schema = schema_of(Annotated[Cat | Dog, pydantic.Field(discriminator="kind")])
        assert schema["discriminator"] == {"propertyName": "kind"}
        assert "$defs" not in repr(schema)

    def test_recursive_model_keeps_its_reference(self) -> None:
        def tool(a: Node, b: Tree, c: Optional[list[Node]] = None): ...

        schema = check(input_schema(read(tool)))
        assert schema["properties"]["a"] == {"$ref": "#/$defs/Node"}
        assert schema["$defs"].keys() == {"Node"}
        good = {"value": 1, "below": [{"value": 2, "below": [{"value": 3}]}]}
        bad = {"value": 1, "below": [{"value": 2, "below": [{"value": "three"}]}]}
        assert accepts(schema, {"a": good, "b": {"root": good, "other": None}, "c": [good]})
        assert not accepts(schema, {"a": bad, "b": {"root": good}})
        assert not accepts(schema, {"a": good, "b": {"root": good, "other": bad}})

    def test_result_schema_of_a_recursive_model_checks_nested_values(self) -> None:
        def tool() -> list[Tree]: ...

        schema = check(output_schema(read(tool)))
        assert accepts(schema, [{"root": {"value": 1, "below": []}, "other": None}])
        assert not accepts(schema, [{"root": {"value": "x", "below": []}, "other": None}])


class TestValidation:
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
        ids=stable_id,
    )
    def test_schema_accepts_valid_values_only(self, annotation, good, bad) -> None:
        schema = schema_of(annotation)
        assert [accepts(schema, value) for value in good] == [True] * len(good)
        assert [accepts(schema, value) for value in bad] == [False] * len(bad)


class TestResults:
    @pytest.mark.parametrize("annotation", [MISSING, None, type(None), "None"])
    def test_no_output_schema_without_a_declared_result(self, annotation) -> None:
        def tool(): ...

        if annotation is not MISSING:
            tool.__annotations__["return"] = annotation
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
        ids=stable_id,
    )
    def test_iterator_is_an_array(self, annotation) -> None:
        def tool(): ...

        tool.__annotations__["return"] = annotation
        assert output_schema(read(tool)) == {"type": "array", "items": {"type": "integer"}}

    def test_list_without_an_item_type_allows_any_item(self) -> None:
        def tool() -> list: ...

        assert output_schema(read(tool)) == {"type": "array", "items": {}}

    @pytest.mark.parametrize(
        "annotation",
        [cabc.Iterator, cabc.Iterable, typing.Iterator, typing.Generator, typing.AsyncIterator],
        ids=stable_id,
    )
    def test_iterator_without_an_item_type_allows_any_item(self, annotation) -> None:
        def tool(): ...

        tool.__annotations__["return"] = annotation
        assert output_schema(read(tool)) == {"type": "array", "items": {}}
        assert approximate_schema(annotation) == {"type": "array", "items": {}}

    def test_model_with_the_name_of_an_iterator_has_its_own_schema(self) -> None:
        class Generator(pydantic.BaseModel):
            power: int

        def tool(): ...

        tool.__annotations__["return"] = Generator
        assert output_schema(read(tool)) == result_schema(Generator)

    def test_class_that_pydantic_cannot_describe_has_an_empty_schema(self) -> None:
        class Engine: ...

        def tool() -> Engine: ...

        assert output_schema(read(tool)) == {}

    def test_output_schema_is_cached(self) -> None:
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
def test_types_that_need_pydantic_have_no_approximate_schema(annotation: Any) -> None:
    with pytest.raises(_NeedsPydantic):
        approximate_schema(annotation)


@pytest.mark.parametrize(
    "annotation",
    [list, Optional[list], dict[str, list], list[Any], tuple[int, str]],
    ids=stable_id,
)
def test_approximate_schema_allows_what_the_full_schema_allows(annotation: Any) -> None:
    assert approximate_schema(annotation) == result_schema(annotation)


def test_enum_with_the_name_of_a_text_type_needs_pydantic() -> None:
    pair = enum.Enum("date", {"ONE": (1, 2)})
    with pytest.raises(_NeedsPydantic):
        approximate_schema(pair)


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
