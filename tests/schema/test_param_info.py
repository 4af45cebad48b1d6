"""Option and Argument, of tooli and of Typer, in Annotated and as defaults."""

import inspect
from pathlib import Path
from typing import Annotated

import pydantic
import pytest
import typer
from tests.schema.reading import read_one

import tooli
from tooli import Argument, Option
from tooli.core.tool import (
    MISSING,
    Scalar,
    TyperOnly,
)
from tooli.errors import DefinitionError
from tooli.schema.json_schema import input_schema
from tooli.schema.param_info import (
    ARGUMENT_DEFAULTS,
    OPTION_DEFAULTS,
    ParamInfo,
    to_param_info,
)
from tooli.testing import invoke

STR, INT = Scalar(str), Scalar(int)


@pytest.mark.parametrize("library", [tooli, typer], ids=["tooli", "typer"])
class TestOptionAndArgument:
    """The two libraries' Option and Argument, in Annotated and as defaults."""

    def test_option_in_annotated_is_read(self, library) -> None:
        param = read_one(Annotated[int, library.Option(help="how many")], 3)
        assert (param.kind, param.default, param.help) == ("option", 3, "how many")
        assert param.annotation is int

    def test_option_as_default_value_is_read(self, library) -> None:
        param = read_one(int, library.Option(3, help="how many"))
        assert (param.kind, param.default, param.help) == ("option", 3, "how many")

    def test_option_without_a_default_is_required(self, library) -> None:
        for param in (
            read_one(Annotated[int, library.Option()]),
            read_one(int, library.Option()),
            read_one(int, library.Option(...)),
        ):
            assert (param.kind, param.required, param.default) == ("option", True, MISSING)

    def test_argument_with_a_default_is_optional(self, library) -> None:
        for param in (
            read_one(Annotated[int, library.Argument()], 3),
            read_one(int, library.Argument(3)),
        ):
            assert (param.kind, param.required, param.default) == ("argument", False, 3)

    def test_declared_flags_of_an_option_are_kept(self, library) -> None:
        for param in (
            read_one(Annotated[int, library.Option("--count", "-c")], 3),
            read_one(int, library.Option(3, "--count", "-c")),
        ):
            assert (param.flags, param.default) == (("--count", "-c"), 3)
            assert param.decls == ("--count", "-c")

    @pytest.mark.parametrize(
        ("decls", "flags", "negations"),
        [
            (("--on/--off",), ("--on",), ("--off",)),
            (("--on/--off", "-n/-f"), ("--on", "-n"), ("--off", "-f")),
            (("--on",), ("--on",), ()),
            ((" /--off",), (), ("--off",)),
            (("/x;/y",), ("/x",), ("/y",)),
        ],
    )
    def test_flag_pairs_are_split_into_flags_and_negations(
        self, library, decls, flags, negations
    ) -> None:
        param = read_one(Annotated[bool, library.Option(*decls)], False)
        assert (param.flags, param.negations) == (flags, negations)

    def test_option_with_only_a_negation_needs_typer(self, library) -> None:
        assert not read_one(Annotated[bool, library.Option(" /--off")], True).is_fast_path

    def test_option_with_an_identifier_among_its_names_needs_typer(self, library) -> None:
        param = read_one(Annotated[int, library.Option("--count", "number")], 3)
        assert param.flags == ("--count",)
        assert not param.is_fast_path

    def test_counter_is_a_flag_without_negation(self, library) -> None:
        param = read_one(Annotated[int, library.Option("-v", count=True)], 0)
        assert param.is_flag
        assert param.negations == ()

    def test_option_with_a_default_factory_is_optional(self, library) -> None:
        param = read_one(Annotated[int, library.Option(default_factory=lambda: 3)])
        assert not param.required

    @pytest.mark.parametrize("kwargs", [{"callback": print}, {"prompt": True}, {"is_eager": True}])
    def test_keyword_that_needs_typer_disables_the_fast_path(self, library, kwargs) -> None:
        param = read_one(Annotated[str, library.Option(**kwargs)], "x")
        assert not param.is_fast_path

    def test_bytes_with_a_path_keyword_need_typer(self, library) -> None:
        annotation = Annotated[bytes, library.Option(resolve_path=True)]
        assert read_one(annotation, b"").shape == TyperOnly(bytes)

    def test_only_options_of_tooli_have_tooli_info(self, library) -> None:
        param = read_one(Annotated[int, library.Option()], 3)
        assert param.has_tooli_info is (library is tooli)


class TestErrors:
    def test_unknown_keyword_is_rejected(self) -> None:
        with pytest.raises(DefinitionError, match=r"Option\(\) has no keyword 'hepl'.*'help'"):
            Option(1, hepl="x")

    def test_argument_rejects_a_keyword_of_option(self) -> None:
        with pytest.raises(DefinitionError, match=r"Argument\(\) has no keyword 'prompt'"):
            Argument(prompt=True)

    def test_annotated_with_option_and_argument_is_rejected(self) -> None:
        with pytest.raises(DefinitionError, match="more than one Option or Argument"):
            read_one(Annotated[int, Option(), Argument()])

    def test_option_in_annotated_and_as_default_is_rejected(self) -> None:
        with pytest.raises(DefinitionError, match="in Annotated and as its default"):
            read_one(Annotated[int, Option()], Option(3))

    def test_default_inside_annotated_argument_is_rejected(self) -> None:
        with pytest.raises(DefinitionError, match="write the default after `=`"):
            read_one(Annotated[int, Argument(3)])


def test_option_keeps_default_declarations_and_keywords() -> None:
    info = Option(3, "--size", "-s", help="how big", hidden=False, min=None)
    assert (info.kind, info.default, info.decls) == ("option", 3, ("--size", "-s"))
    assert info.option_kwargs == {"help": "how big"}


def test_option_of_typer_is_converted() -> None:
    info = to_param_info(typer.Option("x", "--name", help="who", min=3))
    assert isinstance(info, ParamInfo)
    assert (info.kind, info.default, info.decls) == ("option", "x", ("--name",))
    assert info.option_kwargs == {"help": "who", "min": 3}
    assert not info.is_tooli_info
    assert to_param_info(typer.Argument(help="x")).kind == "argument"


@pytest.mark.parametrize("value", [None, 3, "text", object()])
def test_other_values_are_not_converted(value) -> None:
    assert to_param_info(value) is None


def test_every_keyword_of_typer_has_a_known_default() -> None:
    """A new version of Typer may add keywords."""
    for function, known in ((typer.Option, OPTION_DEFAULTS), (typer.Argument, ARGUMENT_DEFAULTS)):
        names = inspect.signature(function).parameters.keys()
        assert set(names) - {"default", "param_decls"} <= set(known)


def test_keywords_with_default_values_are_left_out() -> None:
    assert Option(1, help=None, min=2).option_kwargs == {"min": 2}
    assert to_param_info(typer.Option(1, help=None, min=2)).option_kwargs == {"min": 2}


def test_repr() -> None:
    assert repr(Option(1, "--n", min=2)) == "Option(1, *('--n',), **{'min': 2})"
    assert repr(Argument(help="x")) == "Argument(Ellipsis, *(), **{'help': 'x'})"


# ------------------------------------------------------------------ pydantic's Field


def test_field_as_default_keeps_default_bounds_and_description() -> None:
    app = tooli.Tooli("fields")

    @app.command()
    def add(
        count: int = pydantic.Field(..., ge=1),
        size: int = pydantic.Field(5, le=9, description="How large."),
        tags: list[str] = pydantic.Field(default_factory=lambda: ["x"]),  # noqa: B008
        key: Annotated[int, Option("--kk", help="The key.")] = pydantic.Field(3, le=5),
    ) -> list:
        return [count, size, tags, key]

    @app.command()
    def untyped(count=pydantic.Field(5, ge=1)) -> int:  # noqa: B008
        return count

    assert invoke(app, "add", "1", mode="json").result == [1, 5, ["x"], 3]
    assert invoke(app, "add", "1", "--size", "9", "--kk", "4", mode="json").result == [
        *(1, 9, ["x"], 4),
    ]
    assert app.call("add", count=2, tags=["y"]).result == [2, 5, ["y"], 3]
    wrong = app.call("add", count=0, size=10, key=6).error
    assert wrong is not None and wrong.details is not None
    assert {problem["field"] for problem in wrong.details["errors"]} == {"count", "size", "key"}
    tool = app.find("add")
    assert tool is not None
    schema = input_schema(tool)
    assert schema["required"] == ["count"]
    size = {"type": "integer", "default": 5, "maximum": 9, "description": "How large."}
    assert schema["properties"]["size"] == size
    assert [param.help for param in tool.params] == [None, "How large.", None, "The key."]
    assert app.call("untyped").result == 5
    assert app.call("untyped", count=0).error is not None


def test_description_of_a_field_in_annotated_is_the_help() -> None:
    param = read_one(Annotated[int, pydantic.Field(ge=1, description="How many.")])
    assert param.help == "How many."


@pytest.mark.parametrize("exists", [True, False])
def test_dash_is_a_path_where_the_command_allows_it(exists: bool) -> None:
    app = tooli.Tooli("dash")

    @app.command()
    def read(
        path: Annotated[Path, typer.Argument(exists=exists, allow_dash=True)],
    ) -> str:
        return str(path)

    @app.command()
    def refuse(path: Annotated[Path, typer.Argument(exists=True)]) -> str:
        return str(path)

    assert invoke(app, "read", "-", mode="json").result == "-"
    assert app.call("read", path="-").result == "-"
    assert invoke(app, "refuse", "-", mode="json").exit_code == 2
