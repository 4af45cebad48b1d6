"""Pydantic on demand: values validated, objects put together from raw."""
# ruff: noqa: UP045  both ways to spell an optional are read

import datetime as dt
import json
import typing
from typing import Optional

import pydantic
import pytest

from tooli.core.tool import MISSING
from tooli.schema import ConversionError, RawText
from tooli.schema.convert_values import convert_argument
from tooli.schema.pydantic_bridge import (
    get_type_adapter,
    parse_json_text,
    parse_structured,
    parse_text,
    validate,
)
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


class TestAdapter:
    def test_adapter_is_cached(self) -> None:
        annotation = list[User]
        assert get_type_adapter(annotation) is get_type_adapter(annotation)

    def test_instance_of_an_unknown_class_is_accepted(self) -> None:
        class Engine: ...

        engine = Engine()
        assert validate(Engine, engine) is engine
        with pytest.raises(ConversionError, match="instance of"):
            validate(Engine, 3)


class TestValidate:
    def test_every_error_is_reported(self) -> None:
        with pytest.raises(ConversionError) as caught:
            validate(User, {"age": "old", "address": {}})
        reasons = [caught.value, *caught.value.other_errors]
        assert [reason.location for reason in reasons] == [
            ("name",),
            ("age",),
            ("address", "street"),
        ]
        assert reasons[0].message == "a value is required"

    def test_recursion_error_becomes_a_conversion_error(self) -> None:
        class Endless(dict):
            def __getitem__(self, key):
                raise RecursionError

            def get(self, *args):
                raise RecursionError

        def boom(value):
            raise RecursionError

        with pytest.raises(ConversionError, match="too deeply"):
            validate(typing.Annotated[int, pydantic.BeforeValidator(boom)], 3)


class TestText:
    def test_pydantic_parses_text(self) -> None:
        assert parse_text(dt.date, "2024-01-02", {}) == dt.date(2024, 1, 2)

    def test_first_matching_format_is_used(self) -> None:
        option_kwargs = {"formats": ["%Y", "%d.%m.%Y"]}
        assert parse_text(dt.datetime, "02.01.2024", option_kwargs) == dt.datetime(2024, 1, 2)

    def test_text_that_matches_no_format_is_rejected(self) -> None:
        with pytest.raises(ConversionError, match="'x' does not match '%Y' or '%Y-%m'"):
            parse_text(dt.datetime, "x", {"formats": ["%Y", "%Y-%m"]})


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


class TestTypedDict:
    def test_typed_dict_of_typing_is_validated(self) -> None:
        class Keys(typing.TypedDict, total=False):
            a: int

        assert validate(Keys, {"a": "3"}) == {"a": 3}
        assert validate(list[Keys], [{}]) == [{}]
        assert validate(typing.List[Keys], [{}]) == [{}]  # noqa: UP006
        with pytest.raises(ConversionError):
            validate(Keys, {"a": "x"})


# ------------------------------------------------------------------ long lists


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], [str(i) for i in range(2500)]),
        (Optional[list[float]], list(range(2500))),
        (tuple[int, ...], [str(i) for i in range(2500)]),
        (set[int], [str(i % 1200) for i in range(2500)]),
        (frozenset[int], list(range(2500))),
        (dict[int, int], {str(i % 1200) + " " * (i // 1200): str(i) for i in range(2400)}),
        (typing.Annotated[list[int], pydantic.Field(min_length=2000)], [*range(2500)]),
        (list[int] | list[str], [str(i) for i in range(2500)]),
    ],
)
def test_long_containers_are_converted_like_short_ones(annotation, value):
    expected = get_type_adapter(annotation).validate_python(value)
    converted = validate(annotation, value)
    assert converted == expected
    assert type(converted) is type(expected)
    assert list(converted) == list(expected)


@pytest.mark.parametrize(
    "annotation", [list[int], Optional[list[int]], tuple[int, ...], set[int], frozenset[int]]
)
def test_errors_in_long_lists_have_their_index(annotation):
    value = [*range(1500), "x", *range(2000, 2600), "y"]
    with pytest.raises(ConversionError) as caught:
        validate(annotation, value)
    found = [caught.value, *caught.value.other_errors]
    assert [error.location for error in found] == [(1500,), (2101,)]
    assert not caught.value.has_more


def test_errors_in_long_dicts_have_their_key():
    value = {f"k{i}": "x" if i == 1700 else 1 for i in range(2500)}
    with pytest.raises(ConversionError) as caught:
        validate(dict[str, int], value)
    assert caught.value.location == ("k1700",)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(list[int], {i: i for i in range(2000)}), (dict[str, int], [1] * 2000)],
)
def test_container_of_the_wrong_kind_is_one_error(annotation, value):
    with pytest.raises(ConversionError) as caught:
        validate(annotation, value)
    assert (caught.value.location, len(caught.value.other_errors)) == ((), 0)


@pytest.mark.parametrize("count", [200, 201, 5000])
def test_messages_do_not_depend_on_the_number_of_errors(count):
    with pytest.raises(ConversionError) as caught:
        validate(User, {"name": "n", "scores": {f"k{i}": "x" for i in range(count)}})
    assert caught.value.message == "'x' is not a valid integer"
    assert caught.value.location == ("scores", "k0")
    assert caught.value.has_more is (count > 200)
    assert len(caught.value.other_errors) <= 200


def test_many_errors_with_invalid_unicode():
    with pytest.raises(ConversionError) as caught:
        validate(User, {"name": "n", "scores": {f"\ud800{i}": "x" for i in range(300)}})
    assert caught.value.location[0] == "scores"
