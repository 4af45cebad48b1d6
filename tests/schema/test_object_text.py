"""Objects are read from the text of a command line."""

# ruff: noqa: UP045  both ways to spell an optional are read

import json
import typing
from typing import Optional

import pydantic
import pytest

from tooli.core.tool import MISSING
from tooli.errors import AuthError
from tooli.schema import ConversionError, RawText
from tooli.schema.convert_values import convert_argument
from tooli.schema.described import checked_schema, read_params
from tooli.schema.object_text import parse_json_text, parse_structured
from tooli.schema.tool_reader import read_param


class Address(pydantic.BaseModel):
    street: str
    tags: list[str] = []


class User(pydantic.BaseModel):
    name: str
    age: int = 0
    address: Optional[Address] = None
    scores: dict[str, int] = {}
    friends: list["User"] = []


def parse(annotation, *texts, **dotted):
    param = read_param("user", annotation, MISSING)
    return parse_structured(param, texts, {k.replace("__", "."): v for k, v in dotted.items()})


class TestJson:
    @pytest.mark.parametrize(
        ("text", "value"),
        [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("3", 3), ('"x"', "x"), ("just text", "just text")],
    )
    def test_text_that_is_not_json_is_unchanged(self, text, value) -> None:
        assert parse_json_text(text) == value

    @pytest.mark.parametrize("text", ["{", "[1", "[" * 100_000], ids=["object", "list", "deep"])
    def test_text_that_starts_like_json_must_be_json(self, text) -> None:
        with pytest.raises(ConversionError, match="not valid JSON") as caught:
            parse_json_text(text)
        assert caught.value.code == "E1008"

    def test_json_is_read_from_a_file(self, tmp_path) -> None:
        file = tmp_path / "user.json"
        file.write_text('{"name": "ü"}', encoding="utf-8")
        assert parse_json_text(f"@{file}") == {"name": "ü"}

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "No such file"),
            (b"\xff\xfe\xfa", "cannot be read"),
            (b"nonsense", "not valid JSON"),
        ],
    )
    def test_missing_or_invalid_json_file_is_rejected(self, tmp_path, content, reason) -> None:
        file = tmp_path / "user.json"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConversionError, match=reason) as caught:
            parse_json_text(f"@{file}")
        assert caught.value.code == "E1008"

    def test_file_name_with_nul_is_rejected(self) -> None:
        with pytest.raises(ConversionError, match="cannot be read"):
            parse_json_text("@a\0b")


class TestStructured:
    def test_json_text_becomes_a_model(self) -> None:
        assert parse(User, '{"name": "Ada"}') == User(name="Ada")

    def test_last_assignment_wins(self) -> None:
        found = parse(User, '{"name": "Ada", "age": 1}', "age=2", "name=Bob=3")
        assert found == User(name="Bob=3", age=2)

    def test_dotted_flags_set_nested_fields(self) -> None:
        found = parse(User, name=["Ada"], address__street=["High"], address__tags=["a", "b"])
        assert found == User(name="Ada", address=Address(street="High", tags=["a", "b"]))

    def test_dotted_flag_overrides_json(self) -> None:
        assert parse(User, '{"name": "Ada", "age": 1}', age=["7"]) == User(name="Ada", age=7)

    def test_dotted_flag_sets_a_dict_key(self) -> None:
        assert parse(User, name=["Ada"], scores__maths=["3"]).scores == {"maths": 3}

    def test_dotted_flag_accepts_json(self) -> None:
        found = parse(
            User, name=["Ada"], address=['{"street": "x"}'], friends=['[{"name": "Bob"}]']
        )
        assert found.address == Address(street="x")
        assert found.friends == [User(name="Bob")]

    def test_text_field_is_not_parsed_as_json(self) -> None:
        assert parse(User, name=["{not json"]).name == "{not json"

    def test_dotted_flag_accepts_a_json_file(self, tmp_path) -> None:
        file = tmp_path / "a.json"
        file.write_text('{"street": "x"}')
        assert parse(User, name=["Ada"], address=[f"@{file}"]).address == Address(street="x")

    def test_last_value_of_a_dotted_flag_wins(self) -> None:
        assert parse(User, name=["Ada", "Bob"]).name == "Bob"

    def test_field_given_as_a_value_and_by_its_fields_is_rejected(self) -> None:
        with pytest.raises(ConversionError, match="both as a value and by its fields"):
            parse(User, '{"name": "a", "address": "x"}', address__street=["y"])

    def test_dotted_flags_need_an_object(self) -> None:
        with pytest.raises(ConversionError, match="need an object"):
            parse(User, "[1]", name=["x"])

    def test_pydantic_rejects_a_value_that_is_not_an_object(self) -> None:
        with pytest.raises(ConversionError):
            parse(User, "3")

    def test_pydantic_rejects_an_unknown_field(self) -> None:
        class Strict(pydantic.BaseModel, extra="forbid"):
            a: int

        with pytest.raises(ConversionError, match="no such field"):
            parse(Strict, a=["1"], b=["2"])

    def test_list_of_objects_is_read_from_one_or_many_texts(self) -> None:
        ada, bob = {"name": "Ada"}, {"name": "Bob"}
        expected = [User(**ada), User(**bob)]
        assert parse(list[User], json.dumps(ada), json.dumps(bob)) == expected
        assert parse(list[User], json.dumps([ada, bob])) == expected

    def test_dotted_flags_set_fields_of_a_recursive_model(self) -> None:
        class Node(pydantic.BaseModel):
            value: int = 0
            below: Optional["Node"] = None

        found = parse(Node, below__below__value=["3"])
        assert found.below.below.value == 3

    def test_dotted_flags_set_fields_of_a_discriminated_union(self) -> None:
        class Cat(pydantic.BaseModel):
            kind: typing.Literal["cat"]
            names: list[str]

        class Dog(pydantic.BaseModel):
            kind: typing.Literal["dog"]
            owner: Address

        pet = typing.Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
        assert parse(pet, kind=["cat"], names=["Tom", "Tim"]).names == ["Tom", "Tim"]
        dog = parse(pet, kind=["dog"], owner__street=["x"], owner__tags=["a", "b"])
        assert dog.owner == Address(street="x", tags=["a", "b"])

    def test_convert_argument_parses_structured_text(self) -> None:
        param = read_param("user", User, MISSING)
        raw = RawText(['{"name": "Ada"}'], dotted={"age": ["3"]})
        assert convert_argument(param, raw) == User(name="Ada", age=3)
        assert convert_argument(param, {"name": "Ada"}) == User(name="Ada")
        assert repr(raw) == 'RawText([\'{"name": "Ada"}\'])'


# ------------------------------------------------------------------ objects of a JSON Schema


def parse_described(schema, *texts, **dotted):
    params = read_params(checked_schema({"properties": {"user": schema}}, "test"))
    flags = {name.replace("__", "."): values for name, values in dotted.items()}
    return parse_structured(params[0], texts, flags)


USER_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "any": {"type": "array"},
        "free": {},
    },
}


class TestDescribedObjects:
    @pytest.mark.parametrize(
        ("flags", "expected"),
        [
            ({"name": ["12"]}, {"name": "12"}),
            ({"name": ["{x"]}, {"name": "{x"}),
            ({"age": ["12"]}, {"age": 12}),
            ({"age": ["many"]}, {"age": "many"}),
            ({"ratio": ["2"]}, {"ratio": 2}),
            ({"tags": ["1", "b"]}, {"tags": ["1", "b"]}),
            ({"sizes": ["1", "2"]}, {"sizes": [1, 2]}),
            ({"any": ["1", "b"]}, {"any": [1, "b"]}),
            ({"free": ["x"]}, {"free": "x"}),
            ({"free": ['{"a": 1}']}, {"free": {"a": 1}}),
            ({"free": ["{x"]}, {"free": "{x"}),
        ],
    )
    def test_flags_get_the_type_that_the_schema_names(self, flags, expected) -> None:
        dotted = {f"{name}": values for name, values in flags.items()}
        assert parse_described(USER_SCHEMA, **dotted) == expected

    def test_assignments_set_fields(self) -> None:
        assert parse_described(USER_SCHEMA, "age=3", '{"name": "Ada"}') == {
            "age": 3,
            "name": "Ada",
        }

    def test_an_assignment_is_text_where_no_object_is_allowed(self) -> None:
        schema = {"anyOf": [{"type": "string"}, {"type": "array"}]}
        assert parse_described(schema, "a=b") == "a=b"
        assert parse_described(schema, "[1]") == [1]

    def test_json_of_a_type_that_is_not_allowed_is_text(self) -> None:
        schema = {"anyOf": [{"type": "string"}, {"type": "object"}]}
        assert parse_described(schema, "12") == "12"
        assert parse_described(schema, '{"a": 1}') == {"a": 1}

    def test_text_that_looks_like_json_stays_text(self) -> None:
        schema = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
        assert parse_described(schema, "{x") == "{x"
        assert parse_described(schema, "@file") == "@file"

    def test_objects_of_a_list_have_no_flags(self) -> None:
        with pytest.raises(ConversionError, match="give each one as JSON"):
            parse(list[User], '{"name": "Ada"}', name=["Bob"])


def test_a_denied_file_is_an_error_of_its_parameter(tmp_path) -> None:
    def deny(value):
        raise AuthError("not allowed")

    param = read_param("user", User, MISSING)
    with pytest.raises(AuthError) as caught:
        parse_structured(param, ['{"name": "Ada"}'], {}, deny)
    assert caught.value.field == "user"
