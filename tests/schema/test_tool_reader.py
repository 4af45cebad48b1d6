"""A function becomes a Tool: what each annotation, default and setting is read as."""
# ruff: noqa: UP007, UP045  both ways to spell an optional are read

import collections.abc as cabc
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Union

import pydantic
import pytest
import typer
import typing_extensions
from tests.shown import shown

import tooli
from tooli import AgentContext, Argument, Context, Option
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly
from tooli.core.tool import (
    DEFAULT_GUARD,
    DEFAULT_GUIDANCE,
    DEFAULT_LIMITS,
    MISSING,
    Behavior,
    Choice,
    Guard,
    Injected,
    ListOf,
    Maybe,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    TupleOf,
    TyperOnly,
)
from tooli.schema.tool_reader import infer_shape, read_tool, return_annotation


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Home(pathlib.PosixPath):
    pass


@dataclasses.dataclass
class Size:
    width: int


class User(pydantic.BaseModel):
    name: str


class Keys(typing.TypedDict):
    a: int


class NewKeys(typing_extensions.TypedDict):
    a: int


class Row(NamedTuple):
    a: int


class Plain:
    pass


UserId = NewType("UserId", int)
STR, INT = Scalar(str), Scalar(int)


def read(fn, **settings):
    return read_tool(fn, app="app", path=("tool",), kwargs=settings, version="1.0")


def read_one(annotation: Any = MISSING, default: Any = MISSING):
    """The Param of a function with just this parameter, called `the_name`."""
    fn = (lambda the_name: None) if default is MISSING else (lambda the_name=default: None)
    if annotation is not MISSING:
        fn.__annotations__["the_name"] = annotation
    return read(fn).params[0]


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        *[(t, Scalar(t)) for t in (str, int, float, bool)],
        (pathlib.Path, PathShape(pathlib.Path)),
        (Home, PathShape(Home)),
        (Colour, Choice((Colour.RED, Colour.BLUE), Colour)),
        (Level, Choice((Level.LOW,), Level)),
        (Literal["a", "b"], Choice(("a", "b"))),
        (Literal[1, "b"], Choice((1, "b"))),
        (Literal[True], ParsedText(Literal[True])),
        *[(t, ParsedText(t)) for t in (dt.datetime, dt.date, dt.time, dt.timedelta)],
        *[(t, ParsedText(t)) for t in (uuid.UUID, decimal.Decimal, bytes, Plain, object)],
        (Any, ParsedText(Any)),
        (list[int], ListOf(INT)),
        (typing.List[int], ListOf(INT)),  # noqa: UP006
        (set[str], ListOf(STR, set)),
        (frozenset[str], ListOf(STR, frozenset)),
        (tuple[int, ...], ListOf(INT, tuple)),
        (cabc.Sequence[int], ListOf(INT)),
        (cabc.Iterable[int], ListOf(INT)),
        (cabc.Set[int], ListOf(INT, set)),
        (list, ListOf(STR)),
        (tuple, ListOf(STR, tuple)),
        (list[dt.date], ListOf(ParsedText(dt.date))),
        (list[User], ListOf(Structured(User))),
        (list[list[int]], ListOf(Structured(list[int]))),
        (list[Optional[int]], ListOf(Structured(Optional[int]))),
        (tuple[int, str], TupleOf((INT, STR))),
        (tuple[int, dt.date], TupleOf((INT, ParsedText(dt.date)))),
        (tuple[int, User], Structured(tuple[int, User])),
        (tuple[()], Structured(tuple[()])),
        (Optional[int], Maybe(INT)),
        (int | None, Maybe(INT)),
        (None | int, Maybe(INT)),
        (Optional[list[int]], Maybe(ListOf(INT))),
        (int | str, ParsedText(int | str)),
        (Union[int, str, None], ParsedText(Union[int, str, None])),
        (int | User, Structured(int | User)),
        (int | list[int], Structured(int | list[int])),
        (UserId, INT),
        (dict, Structured(dict)),
        (dict[str, int], Structured(dict[str, int])),
        (cabc.Mapping[str, int], Structured(cabc.Mapping[str, int])),
        *[(t, Structured(t)) for t in (Size, User, Keys, NewKeys, Row)],
        (Context, Injected("context")),
        (AgentContext, Injected("context")),
        (typer.Context, Injected("typer")),
        (Optional[Context], Injected("context")),
        (typer.FileText, TyperOnly(typer.FileText)),
        (list[typer.FileText], TyperOnly(typer.FileText)),
        (tuple[typer.FileText, int], TyperOnly(tuple[typer.FileText, int])),
        (Annotated[int, "x"], ParsedText(Annotated[int, "x"])),
        (Annotated[User, "x"], Structured(Annotated[User, "x"])),
    ],
    ids=shown,
)
def test_shape(annotation: Any, shape: Any) -> None:
    assert infer_shape(annotation) == shape


@pytest.mark.parametrize("bare", [typing.List, typing.Sequence])  # noqa: UP006
def test_a_bare_list_is_one_of_text(bare: Any) -> None:
    assert infer_shape(bare) == ListOf(STR)


class TestKinds:
    """Typer's rule: without a default it is an argument, with one it is an option."""

    def test_without_a_default(self) -> None:
        param = read_one(int)
        assert (param.kind, param.required, param.default) == ("argument", True, MISSING)
        assert (param.flags, param.negations) == ((), ())

    def test_with_a_default(self) -> None:
        param = read_one(int, 3)
        assert (param.kind, param.required, param.default) == ("option", False, 3)
        assert (param.flags, param.negations) == (("--the-name",), ())

    def test_a_bool_has_two_words(self) -> None:
        param = read_one(bool, False)
        assert (param.flags, param.negations) == (("--the-name",), ("--no-the-name",))
        assert param.is_flag
        assert not read_one(bool).is_flag

    def test_ellipsis_is_no_default(self) -> None:
        param = read_one(int, ...)
        assert (param.kind, param.required) == ("argument", True)

    @pytest.mark.parametrize(
        ("default", "shape"),
        [(MISSING, STR), (None, STR), (3, INT), ("x", STR), ((1,), TyperOnly(tuple))],
    )
    def test_without_annotation_the_default_speaks(self, default, shape) -> None:
        assert read_one(MISSING, default).shape == shape

    def test_keyword_only(self) -> None:
        def tool(a: int, /, b: int, *, c: int, d: str = "x"): ...

        found = [(p.name, p.kind, p.required) for p in read(tool).params]
        assert found == [
            ("a", "argument", True),
            ("b", "argument", True),
            ("c", "argument", True),
            ("d", "option", False),
        ]

    def test_stars_are_left_out(self) -> None:
        def tool(a: int, *args: int, b: int = 1, **kwargs: str): ...

        assert [p.name for p in read(tool).params] == ["a", "b"]

    @pytest.mark.parametrize(
        "name", ["json", "output", "limit", "schema", "help", "name", "self", "ctx", "kwargs"]
    )
    def test_no_name_is_special(self, name: str) -> None:
        space: dict[str, Any] = {}
        exec(f"def tool({name}: int = 1): ...", space)
        param = read(space["tool"]).params[0]
        assert (param.name, param.flags) == (name, (f"--{name}",))


@pytest.mark.parametrize("library", [tooli, typer], ids=["tooli", "typer"])
class TestOptionAndArgument:
    """The two libraries' Option and Argument, in Annotated and as defaults."""

    def test_annotated(self, library) -> None:
        param = read_one(Annotated[int, library.Option(help="how many")], 3)
        assert (param.kind, param.default, param.help) == ("option", 3, "how many")
        assert param.annotation is int

    def test_as_default(self, library) -> None:
        param = read_one(int, library.Option(3, help="how many"))
        assert (param.kind, param.default, param.help) == ("option", 3, "how many")

    def test_required_option(self, library) -> None:
        for param in (
            read_one(Annotated[int, library.Option()]),
            read_one(int, library.Option()),
            read_one(int, library.Option(...)),
        ):
            assert (param.kind, param.required, param.default) == ("option", True, MISSING)

    def test_optional_argument(self, library) -> None:
        for param in (
            read_one(Annotated[int, library.Argument()], 3),
            read_one(int, library.Argument(3)),
        ):
            assert (param.kind, param.required, param.default) == ("argument", False, 3)

    def test_names(self, library) -> None:
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
    def test_pairs(self, library, decls, flags, negations) -> None:
        param = read_one(Annotated[bool, library.Option(*decls)], False)
        assert (param.flags, param.negations) == (flags, negations)

    def test_an_option_without_a_word_of_its_own_is_typers(self, library) -> None:
        assert not read_one(Annotated[bool, library.Option(" /--off")], True).is_fast_path

    def test_an_identifier_among_the_names_is_typers(self, library) -> None:
        param = read_one(Annotated[int, library.Option("--count", "number")], 3)
        assert param.flags == ("--count",)
        assert not param.is_fast_path

    def test_a_counter(self, library) -> None:
        param = read_one(Annotated[int, library.Option("-v", count=True)], 0)
        assert param.is_flag
        assert param.negations == ()

    def test_a_factory_makes_it_optional(self, library) -> None:
        param = read_one(Annotated[int, library.Option(default_factory=lambda: 3)])
        assert not param.required

    @pytest.mark.parametrize("setting", [{"callback": print}, {"prompt": True}, {"is_eager": True}])
    def test_what_only_typer_honours(self, library, setting) -> None:
        param = read_one(Annotated[str, library.Option(**setting)], "x")
        assert not param.is_fast_path

    def test_text_that_typer_makes_a_path_of(self, library) -> None:
        annotation = Annotated[bytes, library.Option(resolve_path=True)]
        assert read_one(annotation, b"").shape == TyperOnly(bytes)

    def test_whose_it_was(self, library) -> None:
        param = read_one(Annotated[int, library.Option()], 3)
        assert param.has_tooli_info is (library is tooli)


class TestRefining:
    def test_pydantics_metadata_is_kept(self) -> None:
        field = pydantic.Field(gt=3)
        param = read_one(Annotated[int, field, Option(help="x")], 5)
        assert param.annotation == Annotated[int, field]
        assert param.shape == INT
        assert param.exact_type is None
        assert not param.has_valid_default

    def test_text_beside_it_means_nothing(self) -> None:
        param = read_one(Annotated[int, "a comment"], 5)
        assert param.annotation is int
        assert param.exact_type is int

    @pytest.mark.parametrize(
        ("annotation", "default", "is_valid"),
        [
            (int, 3, True),
            (float, 3, False),
            (int | None, None, True),
            (Colour, Colour.RED, True),
            (Colour, "red", False),
            (Literal["a"], "a", True),
            (Literal["a"], "b", False),
            (list[int] | None, None, False),
            (pathlib.Path, pathlib.Path(), False),
            (Annotated[int, Option(min=1)], 3, False),
        ],
    )
    def test_a_default_of_the_right_class_is_valid(self, annotation, default, is_valid) -> None:
        assert read_one(annotation, default).has_valid_default is is_valid

    def test_bounds_forbid_the_short_way(self) -> None:
        assert read_one(Annotated[int, Option(max=1)], 3).exact_type is None


class TestOneModel:
    def test_its_fields_are_the_parameters(self) -> None:
        def tool(order: User, ctx: Context): ...

        made = read(tool, input_model=User)
        assert [(p.name, p.kind) for p in made.params] == [("name", "option"), ("ctx", "injected")]
        assert made.input_model == ("order", User)

    @pytest.mark.parametrize(
        ("fn", "model"), [(lambda a, b: None, User), (lambda: None, User), (lambda a: None, Size)]
    )
    def test_needs_one_parameter_and_a_model(self, fn, model) -> None:
        with pytest.raises(tooli.DefinitionError, match="input_model= needs a pydantic model"):
            read(fn, input_model=model)


def test_a_default_that_only_sounds_like_an_option() -> None:
    field = pydantic.fields.FieldInfo(default=3)
    assert read_one(Any, field).default is field


class TestInjected:
    @pytest.mark.parametrize(
        ("annotation", "fast"), [(Context, True), (AgentContext, True), (typer.Context, False)]
    )
    def test_is_no_parameter_for_callers(self, annotation, fast) -> None:
        def tool(a: int, ctx, b: int = 3): ...

        tool.__annotations__["ctx"] = annotation
        made = read(tool)
        assert made.param_names == {"a", "b"}
        assert [p.name for p in made.public_params] == ["a", "b"]
        assert [p.name for p in made.params] == ["a", "ctx", "b"]
        assert made.param("ctx").kind == "injected"
        assert made.is_fast_path is fast


class TestCallables:
    def test_partial(self) -> None:
        def tool(a: int, b: "str" = "x", *, c: bool = False) -> int:
            """Do it."""
            return a

        made = read(functools.partial(tool, 1, c=True))
        assert [(p.name, p.default) for p in made.params] == [("b", "x"), ("c", True)]
        assert return_annotation(made) is int

    def test_wrapped(self) -> None:
        def tool(a: "int", b: str = "x") -> "float": ...

        @functools.wraps(tool)
        def around(*args, **kwargs):
            return tool(*args, **kwargs)

        made = read(around)
        assert [(p.name, p.shape) for p in made.params] == [("a", INT), ("b", STR)]
        assert return_annotation(made) is float
        assert made.fn is around

    def test_signature_of_its_own(self) -> None:
        import inspect

        def tool(**kwargs): ...

        word = inspect.Parameter("word", inspect.Parameter.KEYWORD_ONLY, annotation=int)
        tool.__signature__ = inspect.Signature([word])
        assert [(p.name, p.shape) for p in read(tool).params] == [("word", INT)]

    def test_object_with_call(self) -> None:
        class Tool:
            """Calls."""

            def __call__(self, a: "Colour", b: int = 3) -> "Colour":
                return a

        made = read(Tool())
        assert [p.name for p in made.params] == ["a", "b"]
        assert made.params[0].shape == infer_shape(Colour)
        assert return_annotation(made) is Colour
        assert made.doc.summary == "Calls."

    def test_methods(self) -> None:
        class Holder:
            def bound(self, a: int = 1): ...

            @classmethod
            def of_class(cls, a: int = 1): ...

            @staticmethod
            def loose(a: int = 1): ...

        for method in (Holder().bound, Holder.of_class, Holder.loose):
            assert [p.name for p in read(method).params] == ["a"]

    def test_builtin(self) -> None:
        assert [p.name for p in read(len).params] == ["obj"]


class TestTool:
    def test_the_function_is_the_same_object(self) -> None:
        def tool(): ...

        assert read(tool).fn is tool
        assert vars(tool) == {}

    def test_names(self) -> None:
        made = read_tool(lambda: None, app="file-tools", path=("users", "create"), kwargs={})
        assert (made.name, made.key, made.id) == (
            "create",
            "users.create",
            "file-tools.users.create",
        )

    def test_of_itself_it_says_little(self) -> None:
        made = read(lambda: None)
        assert made.guard is DEFAULT_GUARD
        assert made.guidance is DEFAULT_GUIDANCE
        assert made.limits is DEFAULT_LIMITS
        assert made.behavior == Behavior()
        assert made.param("nobody") is None

    def test_guard(self) -> None:
        made = read(
            lambda: None,
            auth=["files:write"],
            capabilities=["fs:read"],
            requires_approval=True,
            human_in_the_loop=True,
            danger_level="high",
        )
        assert made.guard == Guard(("files:write",), ("fs:read",), True, True, "high")

    def test_auth_for_anyone_is_reported(self) -> None:
        assert read(lambda: None, auth=[]).guard.scopes == ()
        assert read(lambda: None).guard.scopes is None

    def test_guidance_and_limits(self) -> None:
        made = read(
            lambda: None,
            examples=[{"args": ["x"], "description": "y"}],
            when_to_use="often",
            error_codes={"E3001": "nothing there"},
            timeout=3,
            cost_hint="low",
            paginated=True,
        )
        assert made.guidance.examples == ({"args": ["x"], "description": "y"},)
        assert made.guidance.when_to_use == "often"
        assert made.guidance.error_codes == {"E3001": "nothing there"}
        assert made.guidance.handoffs == ()
        assert (made.limits.timeout, made.limits.cost_hint, made.limits.paginated) == (
            3,
            "low",
            True,
        )

    def test_behaviours_combine(self) -> None:
        both = Destructive | Idempotent
        assert both.labels() == ("idempotent", "destructive")
        assert (ReadOnly | OpenWorld).labels() == ("read-only", "open-world")
        assert read(lambda: None, annotations=both).behavior is both

    def test_version(self) -> None:
        assert read(lambda: None).version == "1.0"
        assert read(lambda: None, version="2.0").version == "2.0"

    @pytest.mark.parametrize("text", [{"cls": object}, {"context_settings": {"a": 1}}])
    def test_what_only_typer_knows(self, text) -> None:
        assert not read(lambda: None, **text).is_fast_path

    def test_who_asks_typer_for_its_context(self) -> None:
        def tool():
            typer.get_current_context()

        assert not read(tool).is_fast_path

    @pytest.mark.parametrize(
        ("returns", "prints"),
        [(MISSING, True), (None, True), ("None", True), (int, False), ("int", False)],
    )
    def test_a_tool_without_a_result_prints(self, returns, prints) -> None:
        def tool(): ...

        if returns is not MISSING:
            tool.__annotations__["return"] = returns
        assert read(tool).returns_printed_text is prints

    def test_streams(self) -> None:
        def items():
            yield 1

        async def later():
            yield 1

        async def once(): ...

        assert [read(fn).is_streaming for fn in (items, later, once)] == [True, True, False]
        assert [read(fn).returns_printed_text for fn in (items, later, once)] == [
            False,
            False,
            True,
        ]

    def test_help_stands_for_the_docstring_and_keeps_its_parameters(self) -> None:
        def tool(a: int):
            """Do.

            Args:
                a: how many
            """

        made = read(tool, help="Do it now.")
        assert made.doc.summary == "Do it now."
        assert made.doc.params == {"a": "how many"}
        assert read(tool).doc.summary == "Do."
        own = read(tool, help="Do.\n\nArgs:\n    a: as you like")
        assert own.doc.params == {"a": "as you like"}


def test_missing_is_nothing() -> None:
    assert not MISSING
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize(
    ("annotation", "many", "width"),
    [
        (int, False, 1),
        (list[int], True, 1),
        (Optional[set[int]], True, 1),
        (tuple[int, str], False, 2),
    ],
)
def test_how_much_a_parameter_takes(annotation, many, width) -> None:
    param = read_one(annotation)
    assert (param.is_multiple, param.nargs) == (many, width)


def test_hidden_parameters() -> None:
    assert read_one(Annotated[int, Argument(hidden=True)]).hidden
    assert not read_one(int).hidden
