"""Read a function, its annotations, its defaults and its keywords into a Tool."""
# ruff: noqa: UP045  both ways to spell an optional are read

import functools
import pathlib
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
import typer
from tests.schema.reading import Colour, Point, User, read, read_one

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
    PathShape,
    Scalar,
    TyperOnly,
)
from tooli.schema.json_schema import output_schema
from tooli.schema.tool_reader import (
    declares_result,
    infer_shape,
    missing_required_parameters,
    parameter_names,
    read_tool,
    return_annotation,
)

STR, INT = Scalar(str), Scalar(int)


class TestParameterKinds:
    """Typer's rule: without a default it is an argument, with one it is an option."""

    def test_parameter_without_a_default_is_an_argument(self) -> None:
        param = read_one(int)
        assert (param.kind, param.required, param.default) == ("argument", True, MISSING)
        assert (param.flags, param.negations) == ((), ())

    def test_parameter_with_a_default_is_an_option(self) -> None:
        param = read_one(int, 3)
        assert (param.kind, param.required, param.default) == ("option", False, 3)
        assert (param.flags, param.negations) == (("--the-name",), ())

    def test_bool_option_has_a_negation(self) -> None:
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
    def test_shape_without_annotation_comes_from_the_default(self, default, shape) -> None:
        assert read_one(MISSING, default).shape == shape

    def test_keyword_only_parameter_without_a_default_is_an_argument(self) -> None:
        def tool(a: int, /, b: int, *, c: int, d: str = "x"): ...

        found = [(p.name, p.kind, p.required) for p in read(tool).params]
        assert found == [
            ("a", "argument", True),
            ("b", "argument", True),
            ("c", "argument", True),
            ("d", "option", False),
        ]

    def test_variadic_parameters_are_left_out(self) -> None:
        def tool(a: int, *args: int, b: int = 1, **kwargs: str): ...

        assert [p.name for p in read(tool).params] == ["a", "b"]

    @pytest.mark.parametrize(
        "name", ["json", "output", "limit", "schema", "help", "name", "self", "ctx", "kwargs"]
    )
    def test_parameter_may_have_any_name(self, name: str) -> None:
        space: dict[str, Any] = {}
        exec(f"def tool({name}: int = 1): ...", space)
        param = read(space["tool"]).params[0]
        assert (param.name, param.flags) == (name, (f"--{name}",))


class TestMetadataAndDefaults:
    def test_pydantic_metadata_is_kept(self) -> None:
        field = pydantic.Field(gt=3)
        param = read_one(Annotated[int, field, Option(help="x")], 5)
        assert param.annotation == Annotated[int, field]
        assert param.shape == INT
        assert param.exact_type is None
        assert not param.has_valid_default

    def test_text_in_annotated_is_ignored(self) -> None:
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
    def test_default_of_the_exact_type_is_valid(self, annotation, default, is_valid) -> None:
        assert read_one(annotation, default).has_valid_default is is_valid

    def test_parameter_with_bounds_has_no_exact_type(self) -> None:
        assert read_one(Annotated[int, Option(max=1)], 3).exact_type is None


class TestInputModel:
    def test_fields_of_the_model_are_the_parameters(self) -> None:
        def tool(order: User, ctx: Context): ...

        made = read(tool, input_model=User)
        assert [(p.name, p.kind) for p in made.params] == [("name", "option"), ("ctx", "injected")]
        assert made.input_model == ("order", User)

    @pytest.mark.parametrize(
        ("fn", "model"), [(lambda a, b: None, User), (lambda: None, User), (lambda a: None, Point)]
    )
    def test_input_model_needs_one_parameter_and_a_pydantic_model(self, fn, model) -> None:
        with pytest.raises(tooli.DefinitionError, match="input_model= needs a pydantic model"):
            read(fn, input_model=model)


def test_field_of_pydantic_contains_the_default() -> None:
    assert read_one(Any, pydantic.fields.FieldInfo(default=3)).default == 3


class TestInjected:
    @pytest.mark.parametrize(
        ("annotation", "fast"), [(Context, True), (AgentContext, True), (typer.Context, False)]
    )
    def test_injected_parameter_is_not_public(self, annotation, fast) -> None:
        def tool(a: int, ctx, b: int = 3): ...

        tool.__annotations__["ctx"] = annotation
        made = read(tool)
        assert made.param_names == {"a", "b"}
        assert [p.name for p in made.public_params] == ["a", "b"]
        assert [p.name for p in made.params] == ["a", "ctx", "b"]
        assert made.param("ctx").kind == "injected"
        assert made.is_fast_path is fast


class TestCallables:
    def test_partial_omits_bound_arguments(self) -> None:
        def tool(a: int, b: "str" = "x", *, c: bool = False) -> int:
            """Do it."""
            return a

        made = read(functools.partial(tool, 1, c=True))
        assert [(p.name, p.default) for p in made.params] == [("b", "x"), ("c", True)]
        assert return_annotation(made) is int

    def test_functools_wraps_keeps_the_signature(self) -> None:
        def tool(a: "int", b: str = "x") -> "float": ...

        @functools.wraps(tool)
        def around(*args, **kwargs):
            return tool(*args, **kwargs)

        made = read(around)
        assert [(p.name, p.shape) for p in made.params] == [("a", INT), ("b", STR)]
        assert return_annotation(made) is float
        assert made.fn is around

    def test_signature_attribute_is_read(self) -> None:
        import inspect

        def tool(**kwargs): ...

        parameter = inspect.Parameter("word", inspect.Parameter.KEYWORD_ONLY, annotation=int)
        tool.__signature__ = inspect.Signature([parameter])
        assert [(p.name, p.shape) for p in read(tool).params] == [("word", INT)]

    def test_callable_object_is_read_through_its_call_method(self) -> None:
        class Tool:
            """Calls."""

            def __call__(self, a: "Colour", b: int = 3) -> "Colour":
                return a

        made = read(Tool())
        assert [p.name for p in made.params] == ["a", "b"]
        assert made.params[0].shape == infer_shape(Colour)
        assert return_annotation(made) is Colour
        assert made.doc.summary == "Calls."

    def test_return_annotation_that_cannot_be_evaluated_is_missing(self) -> None:
        def fn(x: int) -> "OnlyForTypeCheckers":  # noqa: F821
            return x

        made = read(fn)
        assert return_annotation(made) is MISSING
        assert output_schema(made) is None

    def test_methods_have_no_self_or_cls_parameter(self) -> None:
        class Holder:
            def bound(self, a: int = 1): ...

            @classmethod
            def of_class(cls, a: int = 1): ...

            @staticmethod
            def loose(a: int = 1): ...

        for method in (Holder().bound, Holder.of_class, Holder.loose):
            assert [p.name for p in read(method).params] == ["a"]

    def test_builtin_function_is_read(self) -> None:
        assert [p.name for p in read(len).params] == ["obj"]


class TestTool:
    def test_the_function_is_the_same_object(self) -> None:
        def tool(): ...

        assert read(tool).fn is tool
        assert vars(tool) == {}

    def test_name_key_and_id_come_from_the_path(self) -> None:
        made = read_tool(lambda: None, app="file-tools", path=("users", "create"), kwargs={})
        assert (made.name, made.key, made.id) == (
            "create",
            "users.create",
            "file-tools.users.create",
        )

    def test_tool_without_keywords_has_default_values(self) -> None:
        made = read(lambda: None)
        assert made.guard is DEFAULT_GUARD
        assert made.guidance is DEFAULT_GUIDANCE
        assert made.limits is DEFAULT_LIMITS
        assert made.behavior == Behavior()
        assert made.param("nobody") is None

    def test_guard_is_read_from_keywords(self) -> None:
        made = read(
            lambda: None,
            auth=["files:write"],
            capabilities=["fs:read"],
            requires_approval=True,
            human_in_the_loop=True,
            danger_level="high",
        )
        assert made.guard == Guard(("files:write",), ("fs:read",), True, True, "high")

    def test_empty_auth_differs_from_no_auth(self) -> None:
        assert read(lambda: None, auth=[]).guard.scopes == ()
        assert read(lambda: None).guard.scopes is None

    def test_guidance_and_limits_are_read_from_keywords(self) -> None:
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

    def test_version_is_1_0_unless_given(self) -> None:
        assert read(lambda: None).version == "1.0"
        assert read(lambda: None, version="2.0").version == "2.0"

    @pytest.mark.parametrize("kwargs", [{"cls": object}, {"context_settings": {"a": 1}}])
    def test_keywords_that_need_typer_disable_the_fast_path(self, kwargs) -> None:
        assert not read(lambda: None, **kwargs).is_fast_path

    def test_function_that_reads_the_context_of_typer_needs_typer(self) -> None:
        def tool():
            typer.get_current_context()

        assert not read(tool).is_fast_path

    @pytest.mark.parametrize(
        ("returns", "prints"),
        [(MISSING, True), (None, True), ("None", True), (int, False), ("int", False)],
    )
    def test_printed_text_is_the_result_without_a_return_annotation(self, returns, prints) -> None:
        def tool(): ...

        if returns is not MISSING:
            tool.__annotations__["return"] = returns
        assert read(tool).returns_printed_text is prints

    def test_generator_functions_are_streaming(self) -> None:
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

    def test_help_replaces_the_docstring_but_not_its_parameters(self) -> None:
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


def test_missing_is_falsy() -> None:
    assert not MISSING
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize(
    ("annotation", "is_multiple", "nargs"),
    [
        (int, False, 1),
        (list[int], True, 1),
        (Optional[set[int]], True, 1),
        (tuple[int, str], False, 2),
    ],
)
def test_is_multiple_and_nargs_depend_on_the_type(annotation, is_multiple, nargs) -> None:
    param = read_one(annotation)
    assert (param.is_multiple, param.nargs) == (is_multiple, nargs)


def test_hidden_is_read_from_argument() -> None:
    assert read_one(Annotated[int, Argument(hidden=True)]).hidden
    assert not read_one(int).hidden


def plain(a: int, b: str = "", *, c: float, d: bool = False) -> None: ...


def with_context(ctx: Context, a: int) -> None: ...


def with_undefined_type(a: "NotYet") -> None: ...  # type: ignore[name-defined]  # noqa: F821


class CallableObject:
    def __call__(self, a: int, *rest: int, **more: int) -> None: ...


def test_parameter_names_of_any_callable() -> None:
    assert parameter_names(plain) == ("a", "b", "c", "d")
    assert parameter_names(functools.partial(plain, c=1.0)) == ("a", "b", "c", "d")
    assert parameter_names(CallableObject()) == ("a",)
    assert parameter_names(lambda: None) == ()


def test_missing_required_parameters_are_found() -> None:
    assert missing_required_parameters(plain, ()) == ("a", "c")
    assert missing_required_parameters(plain, ("a",)) == ("c",)
    assert missing_required_parameters(plain, ("a", "c")) == ()
    assert missing_required_parameters(with_context, ("a",)) == ()
    assert missing_required_parameters(with_context, ()) == ("a",)
    assert missing_required_parameters(with_undefined_type, ()) == ()


def paint(
    what: "pathlib.Path",
    colour: "Colour",
    coats: "Annotated[int, Option('--coats', '-c', min=1)]" = 2,
    tags: "Optional[list[str]]" = None,
    name: "str | None" = None,
    ctx: "Context" = None,
) -> "list[Colour]":
    return [colour]


class TestStringAnnotations:
    """Annotations that are text: quoted, or with `from __future__ import annotations`."""

    def test_string_annotations_of_parameters_are_resolved(self) -> None:
        tool = read_tool(paint, app="app", path=("paint",), kwargs={})
        assert {p.name: p.shape for p in tool.params} == {
            "what": PathShape(pathlib.Path),
            "colour": Choice((Colour.RED, Colour.BLUE), Colour),
            "coats": Scalar(int),
            "tags": Maybe(ListOf(Scalar(str))),
            "name": Maybe(Scalar(str)),
            "ctx": Injected("context"),
        }
        assert tool.param("coats").flags == ("--coats", "-c")
        assert tool.param("coats").option_kwargs == {"min": 1}

    def test_string_annotation_of_the_result_is_resolved(self) -> None:
        tool = read_tool(paint, app="app", path=("paint",), kwargs={})
        assert tool.returns == "list[Colour]"
        assert return_annotation(tool) == list[Colour]

    def test_missing_and_none_result_annotations_differ(self) -> None:
        def silent(): ...

        def says_none() -> "None": ...

        assert return_annotation(read_tool(silent, app="a", path=("s",), kwargs={})) is MISSING
        assert return_annotation(read_tool(says_none, app="a", path=("s",), kwargs={})) is None

    def test_module_name_shadows_builtin_type(self) -> None:
        space = {"str": Colour}
        exec("from __future__ import annotations\ndef tool(x: str): ...", space)
        tool = read_tool(space["tool"], app="a", path=("t",), kwargs={})
        assert tool.params[0].shape == Choice((Colour.RED, Colour.BLUE), Colour)

    def test_quoted_annotation_with_future_import_is_resolved(self) -> None:
        space = {"Colour": Colour}
        source = "def tool(x: 'Colour', y: 'int' = 1) -> 'list[Colour]': ..."
        exec(f"from __future__ import annotations\n{source}", space)
        tool = read_tool(space["tool"], app="a", path=("t",), kwargs={})
        assert [param.shape for param in tool.params] == [
            Choice((Colour.RED, Colour.BLUE), Colour),
            INT,
        ]
        assert return_annotation(tool) == list[Colour]


def test_annotations_that_declare_no_result() -> None:
    space: dict[str, Any] = {}
    exec(
        "import typing\nfrom typing import Any, NoReturn, Optional\n"
        "class Mine: ...\n"
        "def missing(): ...\ndef none() -> None: ...\ndef any_() -> Any: ...\n"
        "def quoted() -> 'typing.Any': ...\ndef object_() -> object: ...\n"
        "def never() -> NoReturn: ...\ndef unknown() -> 'typing.Never0.Any': ...\n"
        "def number() -> int: ...\ndef mine() -> Mine: ...\ndef maybe() -> Optional[int]: ...\n"
        "def stream(): yield 1\n",
        space,
    )
    declared = {name: declares_result(fn) for name, fn in space.items() if hasattr(fn, "__code__")}
    undeclared = ("missing", "none", "any_", "quoted", "object_", "never", "unknown")
    assert declared == dict.fromkeys(undeclared, False) | dict.fromkeys(
        ("number", "mine", "maybe", "stream"), True
    )
    for name in undeclared:
        assert read_tool(space[name], app="a", path=("t",), kwargs={}).returns_printed_text
    tool = read_tool(space["never"], app="a", path=("t",), kwargs={})
    assert return_annotation(tool) is None
    assert output_schema(tool) is None
