"""Named schemas: one for each class, with readable names that do not depend on other commands."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic
from openapi_spec_validator import validate

from tooli import StdinOr, Tooli, Verbatim
from tooli.describe.openapi_document import build_openapi

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"


class Address(pydantic.BaseModel):
    """Where someone lives."""

    city: str


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(alias="full-name")
    address: Address
    color: Color = Color.RED

    @pydantic.computed_field
    @property
    def initial(self) -> str:
        return self.name[:1]


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    friend: Cat


Animal = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


def make_other_class(name: str, **fields: Any) -> Any:
    return pydantic.create_model(name, __module__="other.place", **fields)


def schemas_of(*functions: Any) -> dict[str, Any]:
    app = Tooli("app")
    for i, fn in enumerate(functions):
        app.command(f"c{i}")(fn)
    document = build_openapi("app", "1", None, app.catalog)
    validate(document)
    found = document["components"]["schemas"]
    return {name: schema for name, schema in found.items() if not name.startswith(("C0", "C1"))}


FRAMEWORK = {"CallError", "CallFailure", "CallMeta", "CallPlan", "PlanAnswer"}


def names_of(*functions: Any) -> set[str]:
    return set(schemas_of(*functions)) - FRAMEWORK


def takes(annotation: Any) -> Any:
    def fn(value: Any) -> int:
        return 1

    fn.__annotations__ = {"value": annotation, "return": int}
    return fn


def returns(annotation: Any) -> Any:
    def fn() -> Any: ...

    fn.__annotations__ = {"return": annotation}
    return fn


def test_arguments_and_results_with_one_schema_have_one_name() -> None:
    assert names_of(takes(Address), returns(list[Address])) == {"Address"}
    assert names_of(takes(Cat), returns(Dog)) == {"Cat", "Dog"}


def test_name_of_a_model_does_not_depend_on_other_commands() -> None:
    assert names_of(takes(Person)) == {"PersonInput", "Address", "Color"}
    assert names_of(returns(Person)) == {"Person", "Address", "Color"}
    assert names_of(takes(Person), returns(Person)) == {"Person", "PersonInput", "Address", "Color"}


def test_results_have_defaults_computed_fields_and_aliases() -> None:
    schemas = schemas_of(takes(list[Person]), returns(dict[str, Person]))
    result, argument = schemas["Person"], schemas["PersonInput"]
    assert result["required"] == ["full-name", "address", "color", "initial"]
    assert argument["required"] == ["full-name", "address"]
    assert argument["properties"].keys() == {"full-name", "address", "color"}
    assert argument["properties"]["color"]["description"] == 'Default: `"red"`.'
    assert "default" not in argument["properties"]["color"]
    assert schemas["Address"]["description"] == "Where someone lives."


def test_classes_with_the_same_name() -> None:
    other = make_other_class("Address", street=(str, ...))
    both = names_of(takes(Address), returns(other))
    assert both == {"place_Address", "test_openapi_components_Address"}
    one_call = names_of(returns(tuple[Address, other]))
    assert one_call == both
    twins = [make_other_class("Address", **{name: (str, ...)}) for name in "ab"]
    assert names_of(returns(tuple[tuple(twins)])) == {"place_Address", "other_place_Address"}
    triplets = [make_other_class("Address", **{name: (str, ...)}) for name in "abc"]
    assert names_of(returns(tuple[tuple(triplets)])) == {
        *("place_Address", "other_place_Address", "other_place_Address2")
    }


def test_names_of_the_document_are_not_taken() -> None:
    clash = make_other_class("CallMeta", x=(int, ...))
    assert names_of(returns(clash)) == {"place_CallMeta"}
    spelled = make_other_class("call_error", x=(int, ...))  # generators ignore case and separators
    assert names_of(returns(spelled)) == {"place_call_error"}
    strange = make_other_class("Ünïcode", x=(int, ...))
    assert names_of(returns(strange)) == {"n_code"}


def test_enum_generic_dataclass_and_input() -> None:
    @dataclasses.dataclass
    class Pair:
        first: Color

    class Box(pydantic.BaseModel, Generic[T]):
        item: T

    assert names_of(takes(Pair), returns(Box[Address])) == {
        "Pair",
        "Color",
        "Box_Address",
        "Address",
    }
    assert names_of(takes(StdinOr[list[Address]])) == {"Address"}
    assert names_of(takes(list[Color]), returns(Color)) == {"Color"}


def test_discriminator_refers_to_components() -> None:
    app = Tooli("app")
    app.command("pet")(takes(Animal))
    document = build_openapi("app", "1", None, app.catalog)
    value = document["components"]["schemas"]["PetArguments"]["properties"]["value"]
    assert value["discriminator"] == {
        "propertyName": "kind",
        "mapping": {"cat": "#/components/schemas/Cat", "dog": "#/components/schemas/Dog"},
    }
    assert document["components"]["schemas"]["Cat"]["properties"]["kind"]["enum"] == ["cat"]


def test_verbatim_text_is_not_restricted() -> None:
    app = Tooli("app")
    app.command("one")(takes(Annotated[str, Verbatim]))
    app.command("two")(takes(str))
    schemas = build_openapi("app", "1", None, app.catalog)["components"]["schemas"]
    assert "pattern" not in schemas["OneArguments"]["properties"]["value"]
    assert "pattern" in schemas["TwoArguments"]["properties"]["value"]


def test_own_schemas_of_an_author() -> None:
    app = Tooli("app")
    own = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Part"}, "b": {"const": None}},
        "$defs": {"Part": {"type": "object", "properties": {"more": {"$ref": "#/$defs/Part"}}}},
    }
    app.command("c", output_schema=own)(lambda: {"a": {}})
    schemas = build_openapi("app", "1", None, app.catalog)["components"]["schemas"]
    assert schemas["Part"]["properties"]["more"] == {"$ref": "#/components/schemas/Part"}
    assert schemas["CAnswer"]["properties"]["result"]["properties"]["b"] == {"type": "null"}
