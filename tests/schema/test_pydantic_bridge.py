"""Pydantic on demand: values validated, objects put together from raw."""
# ruff: noqa: UP045  both ways to spell an optional are read

import datetime as dt
import typing
from typing import Optional

import pydantic
import pytest

from tooli.core.tool import MISSING
from tooli.schema import ConversionError
from tooli.schema.pydantic_bridge import (
    get_type_adapter,
    parse_text,
    pydantic_json_schema,
    validate,
    validate_input,
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


class Parcel(pydantic.BaseModel):
    weight: int
    fragile: bool = False


class TestUnknownFields:
    def param(self):
        return read_param("parcel", Parcel, MISSING)

    def test_an_ignored_field_is_a_warning(self) -> None:
        warnings: list[str] = []
        value = {"weight": 1, "fragil": True, "colour": "red"}
        assert validate_input(self.param(), value, warnings) == Parcel(weight=1)
        assert warnings == [
            "'parcel.fragil' was ignored: there is no such field; did you mean 'fragile'?",
            "'parcel.colour' was ignored: there is no such field: the fields are weight, fragile",
        ]

    def test_warnings_are_optional(self) -> None:
        assert validate_input(self.param(), {"weight": 1, "x": 2}) == Parcel(weight=1)

    def test_the_number_of_warnings_is_limited(self) -> None:
        warnings: list[str] = []
        value = {"weight": 1, **{f"extra{number}": 0 for number in range(20)}}
        validate_input(self.param(), value, warnings)
        assert len(warnings) == 6
        assert warnings[-1] == "Other fields of 'parcel' were ignored as well."

    def test_an_unknown_field_given_as_a_flag_is_an_error(self) -> None:
        with pytest.raises(ConversionError, match="did you mean 'fragile'") as caught:
            validate_input(self.param(), {"weight": 1, "fragil": True}, [], [("fragil",)])
        assert caught.value.code == "E1004"
        assert caught.value.location == ("fragil",)

    def test_a_misspelled_required_field_is_one_error(self) -> None:
        with pytest.raises(ConversionError) as caught:
            validate_input(self.param(), {"wieght": 1, "fragile": "maybe"})
        errors = [caught.value, *caught.value.other_errors]
        assert [error.location for error in errors] == [("wieght",), ("fragile",)]
        assert "did you mean 'weight'" in errors[0].message


def test_values_of_secrets_are_not_in_schemas() -> None:
    class Login(pydantic.BaseModel):
        user: str = "ada"
        password: pydantic.SecretStr = pydantic.Field(
            pydantic.SecretStr("hunter2"), examples=["hunter3"]
        )

    class Nested(pydantic.BaseModel):
        first: Login = Login()
        second: Login | None = None

    text = str(pydantic_json_schema(Nested, "validation"))
    assert "hunter" not in text
    assert "'default': 'ada'" in text


def test_references_of_recursive_types_end() -> None:
    schema = pydantic_json_schema(User, "validation")
    assert schema["$defs"]["User"]["properties"]["friends"]["default"] == []


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int] | dict[str, int], ["1"] * 1500),
        (tuple[int, str], [1] * 1500),
    ],
)
def test_containers_that_are_not_plain_are_validated_as_a_whole(annotation, value):
    if annotation == tuple[int, str]:
        with pytest.raises(ConversionError):
            validate(annotation, value)
    else:
        assert validate(annotation, value) == [1] * 1500
