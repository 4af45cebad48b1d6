"""What an author gets wrong is said at once, with the word that was probably meant."""

import pathlib
from typing import Annotated

import pytest

from tooli import Argument, DefinitionError, Option, Suggestion, Tooli
from tooli.schema.param_info import ParamInfo, to_param_info
from tooli.schema.tool_reader import read_tool
from tooli.testing import invoke


def read(fn):
    return read_tool(fn, app="app", path=("tool",), kwargs={})


@pytest.mark.parametrize(
    ("make", "wrong", "meant"),
    [
        (lambda: Tooli("a", descripton="x"), "descripton", None),
        (lambda: Tooli("a", no_arg_is_help=True), "no_arg_is_help", "no_args_is_help"),
        (lambda: Tooli("a").command(timout=3), "timout", "timeout"),
        (lambda: Tooli("a").command("x", anotations=None), "anotations", "annotations"),
        (lambda: Tooli("a").lazy_command("a:b", hiden=True), "hiden", "hidden"),
        (lambda: Option(hlep="x"), "hlep", "help"),
        (lambda: Option(3, "--n", formts=[]), "formts", "formats"),
        (lambda: Argument(envar="X"), "envar", "envvar"),
        (lambda: Argument(prompt=True), "prompt", None),
        (lambda: Tooli("a").options(dryrun=True), "dryrun", "dry_run"),
        (lambda: Suggestion(acton="fix", fix="x"), "acton", "action"),
        (lambda: Suggestion("fix", "x", exmaple="y"), "exmaple", "example"),
        (lambda: Suggestion("fix", "x", qqq="y"), "qqq", None),
    ],
)
def test_a_misspelled_keyword(make, wrong, meant) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert repr(wrong) in str(caught.value)
    if meant:
        assert f"did you mean {meant!r}?" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security_policy": "lax"}, "off, standard, strict"),
        ({"default_output": "xml"}, "auto, json, jsonl, text, plain"),
        ({"mcp_transport": "carrier-pigeon"}, "stdio"),
    ],
)
def test_a_value_that_is_none_of_a_few(settings, words) -> None:
    with pytest.raises(DefinitionError, match=words):
        Tooli("a", **settings)


def test_a_definition_error_stands_outside_the_tree() -> None:
    from tooli import ToolError

    assert issubclass(DefinitionError, TypeError)
    assert not issubclass(DefinitionError, ToolError)


def test_lazy_commands_need_a_colon() -> None:
    with pytest.raises(DefinitionError, match=r"package\.module:function"):
        Tooli("a").lazy_command("package.module.function")


@pytest.mark.parametrize("target", ["no_such_module:f", "os:no_such_function", ":f"])
def test_a_lazy_command_that_cannot_be_loaded(target: str) -> None:
    app = Tooli("a")
    app.lazy_command(target, "late")
    with pytest.raises(DefinitionError, match="cannot be loaded"):
        app.find("late")


def test_two_infos_in_one_annotation() -> None:
    def tool(x: Annotated[int, Option(), Argument()]): ...

    with pytest.raises(DefinitionError, match="more than one"):
        read(tool)


def test_a_default_inside_an_annotated_argument() -> None:
    def tool(x: Annotated[int, Argument(3)]): ...

    with pytest.raises(DefinitionError, match="write the default after `=`"):
        read(tool)


def test_an_annotation_that_cannot_be_read() -> None:
    def tool(x: "NoSuchThing"): ...  # noqa: F821

    with pytest.raises(DefinitionError, match=r"tool: .*'NoSuchThing'.*outside `if TYPE_CHECKING`"):
        read(tool)


@pytest.mark.parametrize("wrong", [list["NeverDefined"], "NeverDefined"])  # noqa: F821
def test_a_type_that_names_what_is_not_defined(wrong) -> None:
    from tooli.schema.pydantic_bridge import get_type_adapter

    with pytest.raises(DefinitionError, match="pydantic cannot read"):
        get_type_adapter(wrong)


def test_a_type_that_pydantic_refuses() -> None:
    from pydantic import Field

    from tooli.schema.pydantic_bridge import get_type_adapter

    with pytest.raises(DefinitionError, match="pydantic cannot read"):
        get_type_adapter(Annotated[int | str, Field(discriminator="kind")])


class TestInfo:
    def test_keeps_only_what_was_said(self) -> None:
        info = Option(3, "--size", "-s", help="how big", hidden=False, min=None)
        assert (info.kind, info.default, info.decls) == ("option", 3, ("--size", "-s"))
        assert info.settings == {"help": "how big"}

    def test_repr(self) -> None:
        assert repr(Argument(help="x")) == "Argument(Ellipsis, *(), **{'help': 'x'})"

    def test_typers_own_become_ours(self) -> None:
        import typer

        theirs = to_param_info(typer.Option("x", "--name", help="who", min=3))
        assert isinstance(theirs, ParamInfo)
        assert (theirs.kind, theirs.default, theirs.decls) == ("option", "x", ("--name",))
        assert theirs.settings == {"help": "who", "min": 3}
        assert not theirs.is_tooli_info
        assert to_param_info(typer.Argument(help="x")).kind == "argument"

    @pytest.mark.parametrize("other", [None, 3, "text", object()])
    def test_nothing_else_is_one(self, other) -> None:
        assert to_param_info(other) is None

    def test_typer_has_no_setting_that_we_do_not_know(self) -> None:
        """A new Typer may bring new settings; this is where we hear of them."""
        import inspect

        import typer

        from tooli.schema.param_info import ARGUMENT_DEFAULTS, OPTION_DEFAULTS

        for theirs, ours in ((typer.Option, OPTION_DEFAULTS), (typer.Argument, ARGUMENT_DEFAULTS)):
            names = inspect.signature(theirs).parameters.keys()
            assert set(names) - {"default", "param_decls"} <= set(ours)


def test_an_unannotated_default_that_only_typer_understands() -> None:
    app = Tooli("paths")

    @app.command()
    def show(place=pathlib.Path("d"), times: int = Option(1)):  # type: ignore[no-untyped-def]
        return f"{place!r} {times}"

    kind = type(pathlib.Path())
    assert invoke(app, "--json", "--place", "q").result == f"{kind('q')!r} 1"
    assert invoke(app, "--json", "--times", "2").result == f"{kind('d')!r} 2"
