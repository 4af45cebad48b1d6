"""Pydantic on demand: values validated, objects put together from words."""
# ruff: noqa: UP045  both ways to spell an optional are read

import datetime as dt
import json
import typing
from typing import Optional

import pydantic
import pytest

from tooli.core.tool import MISSING
from tooli.schema.convert import ConversionError, RawText
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


def parts(annotation, *texts, **dotted):
    param = read_param("user", annotation, MISSING)
    return parse_structured(param, texts, {k.replace("__", "."): v for k, v in dotted.items()})


class TestAdapter:
    def test_made_once(self) -> None:
        annotation = list[User]
        assert get_type_adapter(annotation) is get_type_adapter(annotation)

    def test_a_class_that_pydantic_does_not_know_is_checked_by_class(self) -> None:
        class Engine: ...

        engine = Engine()
        assert validate(Engine, engine) is engine
        with pytest.raises(ConversionError, match="instance of"):
            validate(Engine, 3)


class TestValidate:
    def test_all_reasons_at_once(self) -> None:
        with pytest.raises(ConversionError) as caught:
            validate(User, {"age": "old", "address": {}})
        reasons = [caught.value, *caught.value.other_errors]
        assert [reason.location for reason in reasons] == [
            ("name",),
            ("age",),
            ("address", "street"),
        ]
        assert reasons[0].message == "field required"

    def test_a_value_nested_too_deeply(self) -> None:
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
    def test_by_pydantic(self) -> None:
        assert parse_text(dt.date, "2024-01-02", {}) == dt.date(2024, 1, 2)

    def test_by_formats_the_first_that_fits(self) -> None:
        settings = {"formats": ["%Y", "%d.%m.%Y"]}
        assert parse_text(dt.datetime, "02.01.2024", settings) == dt.datetime(2024, 1, 2)

    def test_by_no_format(self) -> None:
        with pytest.raises(ConversionError, match="'x' does not match '%Y' or '%Y-%m'"):
            parse_text(dt.datetime, "x", {"formats": ["%Y", "%Y-%m"]})


class TestJson:
    @pytest.mark.parametrize(
        ("text", "value"),
        [('{"a": 1}', {"a": 1}), ("[1]", [1]), ("3", 3), ('"x"', "x"), ("just text", "just text")],
    )
    def test_json_or_the_text_itself(self, text, value) -> None:
        assert parse_json_text(text) == value

    @pytest.mark.parametrize("text", ["{", "[1", "[" * 100_000], ids=["object", "list", "deep"])
    def test_what_starts_like_json_must_be_json(self, text) -> None:
        with pytest.raises(ConversionError, match="not valid JSON") as caught:
            parse_json_text(text)
        assert caught.value.code == "E1008"

    def test_a_file(self, tmp_path) -> None:
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
    def test_a_file_that_is_not_there_or_not_json(self, tmp_path, content, reason) -> None:
        file = tmp_path / "user.json"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConversionError, match=reason) as caught:
            parse_json_text(f"@{file}")
        assert caught.value.code == "E1008"

    def test_a_file_name_that_cannot_be_one(self) -> None:
        with pytest.raises(ConversionError, match="cannot be read"):
            parse_json_text("@a\0b")


class TestParts:
    def test_json(self) -> None:
        assert parts(User, '{"name": "Ada"}') == User(name="Ada")

    def test_assignments_and_json_later_words_win(self) -> None:
        found = parts(User, '{"name": "Ada", "age": 1}', "age=2", "name=Bob=3")
        assert found == User(name="Bob=3", age=2)

    def test_dotted(self) -> None:
        found = parts(User, name=["Ada"], address__street=["High"], address__tags=["a", "b"])
        assert found == User(name="Ada", address=Address(street="High", tags=["a", "b"]))

    def test_dots_into_json(self) -> None:
        assert parts(User, '{"name": "Ada", "age": 1}', age=["7"]) == User(name="Ada", age=7)

    def test_dots_into_a_dict(self) -> None:
        assert parts(User, name=["Ada"], scores__maths=["3"]).scores == {"maths": 3}

    def test_json_in_a_part(self) -> None:
        found = parts(
            User, name=["Ada"], address=['{"street": "x"}'], friends=['[{"name": "Bob"}]']
        )
        assert found.address == Address(street="x")
        assert found.friends == [User(name="Bob")]

    def test_text_stays_text(self) -> None:
        assert parts(User, name=["{not json"]).name == "{not json"

    def test_a_file_in_a_part(self, tmp_path) -> None:
        file = tmp_path / "a.json"
        file.write_text('{"street": "x"}')
        assert parts(User, name=["Ada"], address=[f"@{file}"]).address == Address(street="x")

    def test_the_last_word_wins(self) -> None:
        assert parts(User, name=["Ada", "Bob"]).name == "Bob"

    def test_a_value_and_its_parts(self) -> None:
        with pytest.raises(ConversionError, match="both as a value and by its fields"):
            parts(User, '{"name": "a", "address": "x"}', address__street=["y"])

    def test_dots_need_an_object(self) -> None:
        with pytest.raises(ConversionError, match="need an object"):
            parts(User, "[1]", name=["x"])

    def test_what_is_no_object_is_judged_by_pydantic(self) -> None:
        with pytest.raises(ConversionError):
            parts(User, "3")

    def test_an_unknown_part_is_judged_by_pydantic(self) -> None:
        class Strict(pydantic.BaseModel, extra="forbid"):
            a: int

        with pytest.raises(ConversionError, match="extra"):
            parts(Strict, a=["1"], b=["2"])

    def test_many_objects(self) -> None:
        ada, bob = {"name": "Ada"}, {"name": "Bob"}
        wanted = [User(**ada), User(**bob)]
        assert parts(list[User], json.dumps(ada), json.dumps(bob)) == wanted
        assert parts(list[User], json.dumps([ada, bob])) == wanted

    def test_dots_reach_through_what_contains_itself(self) -> None:
        class Node(pydantic.BaseModel):
            value: int = 0
            below: Optional["Node"] = None

        found = parts(Node, below__below__value=["3"])
        assert found.below.below.value == 3

    def test_the_whole_way(self) -> None:
        param = read_param("user", User, MISSING)
        words = RawText(['{"name": "Ada"}'], dotted={"age": ["3"]})
        assert convert_argument(param, words) == User(name="Ada", age=3)
        assert convert_argument(param, {"name": "Ada"}) == User(name="Ada")
        assert repr(words) == 'RawText([\'{"name": "Ada"}\'])'


class TestTypedDict:
    def test_values_of_typings_own(self) -> None:
        class Keys(typing.TypedDict, total=False):
            a: int

        assert validate(Keys, {"a": "3"}) == {"a": 3}
        assert validate(list[Keys], [{}]) == [{}]
        assert validate(typing.List[Keys], [{}]) == [{}]  # noqa: UP006
        with pytest.raises(ConversionError):
            validate(Keys, {"a": "x"})
