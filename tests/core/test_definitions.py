"""Definitions are checked at registration, and one invalid definition breaks nothing else."""

import pathlib
import sys
from typing import Annotated, Any

import pytest

from tooli import Argument, DefinitionError, Option, Suggestion, ToolError, Tooli
from tooli.annotations import Destructive, Idempotent, ReadOnly
from tooli.core.definitions import COMMAND_KEYWORDS
from tooli.schema.tool_reader import read_tool
from tooli.testing import invoke


def read(fn):
    return read_tool(fn, app="app", path=("tool",), kwargs={})


@pytest.mark.parametrize(
    ("make", "wrong", "suggested"),
    [
        (lambda: Tooli("a", descripton="x"), "descripton", "description"),
        (lambda: Tooli("a", no_arg_is_help=True), "no_arg_is_help", "no_args_is_help"),
        (lambda: Tooli("a").command(timout=3), "timout", "timeout"),
        (lambda: Tooli("a").command("x", anotations=None), "anotations", "annotations"),
        (lambda: Tooli("a").lazy_command("a:b", hiden=True), "hiden", "hidden"),
        (lambda: Option(hlep="x"), "hlep", "help"),
        (lambda: Option(3, "--n", formts=[]), "formts", "formats"),
        (lambda: Argument(envar="X"), "envar", "envvar"),
        (lambda: Argument(prompt=True), "prompt", None),
        (lambda: Tooli("a").options(dryrun=True), "dryrun", "dry_run"),
    ],
)
def test_misspelled_keyword_gets_a_suggestion(make, wrong, suggested) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert repr(wrong) in str(caught.value)
    if suggested:
        assert f"did you mean {suggested!r}?" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "wrong", "suggested"),
    [
        (lambda: Suggestion(acton="fix", fix="x"), "acton", "action"),
        (lambda: Suggestion("fix", "x", exmaple="y"), "exmaple", "example"),
        (lambda: Suggestion("fix", "x", qqq="y"), "qqq", None),
        (lambda: ToolError("x", detials={}), "detials", "details"),
    ],
)
def test_misspelled_keyword_of_an_error_is_a_warning(make, wrong, suggested) -> None:
    """An exception in a `raise` statement would hide the error."""
    (warning,) = make().warnings
    assert repr(wrong) in warning
    if suggested:
        assert f"did you mean {suggested!r}?" in warning


@pytest.mark.parametrize(
    ("kwargs", "choices"),
    [
        ({"security_policy": "lax"}, "off, standard, strict"),
        ({"default_output": "xml"}, "auto, json, jsonl, stream, text, plain"),
        ({"mcp_transport": "carrier-pigeon"}, "stdio"),
    ],
)
def test_invalid_choice_lists_the_valid_ones(kwargs, choices) -> None:
    with pytest.raises(DefinitionError, match=choices):
        Tooli("a", **kwargs)


def test_target_of_a_lazy_command_needs_a_colon() -> None:
    with pytest.raises(DefinitionError, match=r"package\.module:function"):
        Tooli("a").lazy_command("package.module.function")


@pytest.mark.parametrize("target", ["no_such_module:f", "os:no_such_function", ":f"])
def test_lazy_command_that_cannot_be_loaded_is_a_definition_error(target: str) -> None:
    app = Tooli("a")
    app.lazy_command(target, "late")
    with pytest.raises(DefinitionError, match="cannot be loaded"):
        app.find("late")


def test_annotation_that_cannot_be_evaluated_is_rejected() -> None:
    def tool(x: "NoSuchThing"): ...  # noqa: F821

    with pytest.raises(DefinitionError, match=r"tool: .*'NoSuchThing'.*outside `if TYPE_CHECKING`"):
        read(tool)


@pytest.mark.parametrize("wrong", [list["NeverDefined"], "NeverDefined"])  # noqa: F821
def test_type_with_an_undefined_name_is_rejected(wrong) -> None:
    from tooli.schema.pydantic_bridge import get_type_adapter

    with pytest.raises(DefinitionError, match="pydantic cannot read"):
        get_type_adapter(wrong)


def test_type_that_pydantic_rejects_is_a_definition_error() -> None:
    from pydantic import Field

    from tooli.schema.pydantic_bridge import get_type_adapter

    with pytest.raises(DefinitionError, match="pydantic cannot read"):
        get_type_adapter(Annotated[int | str, Field(discriminator="kind")])


def test_type_is_inferred_from_a_path_default() -> None:
    app = Tooli("paths")

    @app.command()
    def show(place=pathlib.Path("d"), times: int = Option(1)):  # type: ignore[no-untyped-def]
        return f"{place!r} {times}"

    kind = type(pathlib.Path())
    assert invoke(app, "--json", "--place", "q").result == f"{kind('q')!r} 1"
    assert invoke(app, "--json", "--times", "2").result == f"{kind('d')!r} 2"


# ------------------------------------------------------------------ values


INVALID_OPTIONS = [
    ({"annotations": "read-only"}, "must be ReadOnly, Idempotent"),
    ({"annotations": {"readOnlyHint": True}}, "must be ReadOnly, Idempotent"),
    ({"capabilities": "fs:read"}, "must be a list of capabilities"),
    ({"capabilities": ["fs:raed"]}, "did you mean 'fs:read'?"),
    ({"capabilities": [3]}, "a capability must be a string"),
    ({"capabilities": []}, "must not be empty"),
    ({"capabilities": ["none", "fs:read"]}, "'none' cannot be combined"),
    ({"auth": "files:write"}, "must be a list of scopes"),
    ({"auth": ["files:write", 3]}, "must be a list of scopes"),
    ({"auth": [""]}, "must be a list of scopes"),
    ({"requires_approval": "yes"}, "must be True or False"),
    ({"human_in_the_loop": 1}, "must be True or False"),
    ({"callers": ["script"]}, "must be a list of 'direct', 'code' or both"),
    ({"callers": "code"}, "must be a list of 'direct', 'code' or both"),
    ({"callers": []}, "must be a list of 'direct', 'code' or both"),
    ({"danger_level": "hihg"}, "must be one of none, low, medium"),
    ({"danger_level": ["high"]}, "must be one of none, low, medium"),
    ({"isolation": "wanted"}, "must be 'required'"),
    ({"timeout": "5"}, "must be a number of seconds above 0"),
    ({"timeout": 0}, "must be a number of seconds above 0"),
    ({"timeout": True}, "must be a number of seconds above 0"),
    ({"timeout": float("nan")}, "must be a number of seconds above 0"),
    ({"timeout": float("inf")}, "at most 10000000"),
    ({"timeout": 10_000_001}, "at most 10000000"),
    ({"rate_limit": "60 per minute"}, "such as '60/minute'"),
    ({"rate_limit": 60}, "such as '60/minute'"),
    ({"paginated": -1}, "must be True or the number of records"),
    ({"paginated": "x"}, "must be True or the number of records"),
    ({"max_tokens": 0}, "must be a whole number of tokens"),
    ({"max_tokens": True}, "must be a whole number of tokens"),
    ({"max_tokens": 1.5}, "must be a whole number of tokens"),
    ({"cost_hint": "cheap"}, "must be one of low, medium, high"),
    ({"cost_hint": "hgh"}, "did you mean 'high'?"),
    ({"danger_level": "crtical"}, "did you mean 'critical'?"),
    ({"title": 3}, "must be a string"),
    ({"icons": "icon.png"}, "must be a list of URLs"),
    ({"icons": ["icon.png"]}, "must be a URL"),
    ({"icons": [{"url": "https://x"}]}, "an icon has no 'url'"),
    ({"meta": []}, "must be a dict with strings as keys"),
    ({"meta": {"io.tooli/tool": 1}}, "must not have keys that start with"),
    ({"meta": {"a": [object]}}, "must consist of JSON values"),
    ({"summary": 3}, "must be a string"),
    ({"tags": "shop"}, "must be a list of strings"),
    ({"output_schema": "object"}, "must be a JSON Schema in a dict"),
    ({"when_to_use": ["always"]}, "must be a string"),
    ({"delegation_hint": 3}, "must be a string"),
    ({"task_group": 3}, "must be a string"),
    ({"pipe_input": "xml"}, "must be one of jsonl, json, csv, text"),
    ({"pipe_output": {"format": "csv", "schema": 1}}, "must be a JSON Schema in a dict"),
    ({"version": 2}, "must be a string"),
    ({"always_visible": "yes"}, "must be True or False"),
    ({"pre_validate": "exists"}, "must be a function"),
    ({"native": "no"}, "must be True or False"),
    ({"agent_auto_confirm": "yes"}, "must be True or False"),
    ({"examples": {"args": []}}, "must be a list"),
    ({"examples": "find x"}, "must be a list"),
    ({"examples": ["find x"]}, "an example must be {'args'"),
    ({"examples": [{"argz": []}]}, "an example has no 'argz'; did you mean 'args'?"),
    ({"examples": [{"description": "x"}]}, "the 'args' of an example must be a list"),
    ({"examples": [{"args": "x"}]}, "the 'args' of an example must be a list"),
    ({"examples": [{"args": [None]}]}, "the 'args' of an example must be strings"),
    ({"examples": [{"args": [], "description": 3}]}, "the 'description' of an example"),
    ({"handoffs": "other"}, "must be a list"),
    ({"handoffs": [3]}, "a handoff must be the name of a command"),
    ({"handoffs": [{"command": "x", "whn": "y"}]}, "did you mean 'when'?"),
    ({"error_codes": ["E3010"]}, "must be a dict of codes and meanings"),
    ({"error_codes": {3001: "x"}}, "an error code must be a string"),
    ({"error_codes": {"E3010": None}}, "the meaning of E3010 must be a string"),
    ({"input_schema": "{}"}, "must be a JSON Schema in a dict"),
    ({"own_options": "yes"}, "must be a list of dry_run, timeout, yes"),
    ({"own_options": [["yes"]]}, "must be a list of dry_run, timeout, yes"),
    ({"sunset": "soon"}, "must be a date such as '2027-01-31'"),
    ({"deprecated_version": 3}, "must be a string such as '2.1'"),
    ({"input_model": "Model"}, "must be a pydantic model class"),
    ({"resource": "n://x"}, "only a command with annotations=ReadOnly can be a resource"),
    ({"agent_auto_confirm": True, "requires_approval": True}, "is for harmless commands"),
]


@pytest.mark.parametrize(("options", "message"), INVALID_OPTIONS, ids=str)
def test_invalid_value_is_rejected_at_registration(options, message) -> None:
    app = Tooli("a")
    for register in (app.command, lambda **kwargs: app.lazy_command("m:f", **kwargs)):
        with pytest.raises(DefinitionError) as caught:
            register(**options)
        assert message in str(caught.value)
        assert next(iter(options)) in str(caught.value)
    assert app.catalog.problems == {}


def test_every_keyword_has_an_invalid_case() -> None:
    assert {keyword for options, _ in INVALID_OPTIONS for keyword in options} == COMMAND_KEYWORDS


def test_valid_values_and_none_are_accepted() -> None:
    from tooli.annotations import Idempotent, ReadOnly

    app = Tooli("a")
    app.command(**dict.fromkeys(COMMAND_KEYWORDS))(lambda: 1)
    app.command(
        "b",
        annotations=ReadOnly | Idempotent,
        capabilities={"fs:read"},
        auth=("a",),
        timeout=50,
        examples=[{"args": ["x", 3]}],
        handoffs=("b", {"command": "b", "when": ""}),
        error_codes={"E3010": ""},
        rate_limit="1/second",
        paginated=True,
    )(lambda: 1)
    assert app.call("b").result == 1


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"title": 3}, "title=3 must be a string"),
        ({"auth": "scope"}, "must be a list of scopes"),
        ({"complete": ["a"]}, "must be a dict of parameters"),
        ({"complete": {"a": "abc"}}, "the values of 'a' must be a list or a function"),
    ],
)
def test_invalid_value_of_a_resource_or_prompt_is_rejected(kwargs, message) -> None:
    app = Tooli("a")
    for register in (lambda **kwargs: app.resource("n://{a}", **kwargs), app.prompt):
        with pytest.raises(DefinitionError) as caught:
            register(**kwargs)
        assert message in str(caught.value)
    with pytest.raises(DefinitionError, match="must be a number of bytes"):
        app.resource("n://x", size=-1)
    with pytest.raises(DefinitionError, match="must be a dict"):
        app.resource("n://x", annotations=["user"])


# ------------------------------------------------------------------ file and line


def _line() -> int:
    return sys._getframe(1).f_lineno


def test_message_ends_with_file_and_line() -> None:
    app = Tooli("a")
    makers = [
        lambda: (_line(), Tooli("a", permissions=["fs:raed"])),
        lambda: (_line(), app.command(timeout=-1)),
        lambda: (_line(), app.command(timout=1)),
        lambda: (_line(), app.lazy_command("m:f", auth="x")),
        lambda: (_line(), app.callback(hiden=True)),
        lambda: (_line(), app.resource("no-scheme")),
        lambda: (_line(), app.prompt(title=3)),
        lambda: (_line(), Option(hlep="x")),
    ]
    for make in makers:
        with pytest.raises(DefinitionError) as caught:
            make()
        line = make.__code__.co_firstlineno
        assert str(caught.value).endswith(f"({__file__}:{line})")
        assert caught.value.location == f"{__file__}:{line}"


def test_error_found_later_has_the_line_of_the_registration() -> None:
    app = Tooli("a")

    @app.command()
    def unreadable(x: "NoSuchThing"): ...  # noqa: F821

    app.lazy_command("no_such_module:f", "late")
    lazy_line = _line() - 1
    with pytest.raises(DefinitionError) as caught:
        app.find("unreadable")
    assert caught.value.location == f"{__file__}:{unreadable.__code__.co_firstlineno}"
    assert isinstance(caught.value.__cause__, NameError)
    with pytest.raises(DefinitionError) as caught:
        app.find("late")
    assert caught.value.location == f"{__file__}:{lazy_line}"


def test_definition_error_can_be_pickled() -> None:
    import pickle

    error = DefinitionError("wrong", "app.py:3")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.message, copy.location) == ("wrong (app.py:3)", "wrong", "app.py:3")


# ------------------------------------------------------------------ one invalid definition


def make_app_with_invalid_definitions() -> Tooli:
    app = Tooli("shop")

    @app.command()
    def fine() -> int:
        return 1

    @app.command(handoffs=["nowhere"])
    def pointing() -> int:
        return 2

    @app.command()
    def unreadable(x: "NoSuchThing") -> int:  # noqa: F821
        return 3

    app.lazy_command("no_such_module:f", "late")
    return app


def test_invalid_definition_leaves_the_other_commands_in_the_catalog() -> None:
    catalog = make_app_with_invalid_definitions().catalog
    assert [tool.key for tool in catalog] == ["fine", "pointing"]
    assert list(catalog.problems) == ["unreadable", "late", "pointing"]
    assert catalog["pointing"].guidance.handoffs == ()


def test_calls_from_python_report_an_invalid_definition() -> None:
    app = make_app_with_invalid_definitions()
    assert app.call("fine").result == 1
    assert "warnings" not in app.call("fine").meta
    pointing = app.call("pointing")
    assert pointing.result == 2
    assert "handoffs= names 'nowhere'" in pointing.meta["warnings"][0]
    for name in ("unreadable", "late"):
        error = app.call(name).error
        assert error.code == "E5000"
        assert "its definition is invalid" in error.message
        assert __file__ not in error.message


@pytest.mark.parametrize("interface", ["mcp", "mcp-stateless"])
def test_mcp_server_works_with_an_invalid_definition(interface, capsys) -> None:
    from tooli.testing import app_interfaces
    from tooli.testing.app_interfaces import Case

    classes = (app_interfaces.HandshakeInterface, app_interfaces.StatelessInterface)
    server = {made.name: made for made in classes}[interface](make_app_with_invalid_definitions())
    listed = server._send("tools/list", {})["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["fine", "pointing"]
    reported = capsys.readouterr().err
    assert reported.count("Warning: invalid definition: ") == 3
    assert f"({__file__}:" in reported
    assert server.send_case(Case("fine", {})).envelope["result"] == 1
    pointing = server.send_case(Case("pointing", {})).envelope
    assert "handoffs= names 'nowhere'" in pointing["meta"]["warnings"][0]
    reply = server._send("tools/call", {"name": "late", "arguments": {}})
    assert "its definition is invalid" in reply["error"]["message"]
    assert __file__ not in str(reply)


async def test_http_server_works_with_an_invalid_definition() -> None:
    from tests.http.asgi_client import post, send

    api = make_app_with_invalid_definitions().asgi(mcp=False)
    assert (await post(api, "fine")).json()["result"] == 1
    pointing = (await post(api, "pointing")).json()
    assert pointing["result"] == 2
    assert "handoffs= names 'nowhere'" in pointing["meta"]["warnings"][0]
    for name in ("unreadable", "late"):
        answer = await post(api, name)
        assert answer.status == 500
        assert "its definition is invalid" in answer.json()["error"]["message"]
        assert __file__ not in answer.body.decode()
    listed = (await send(api, "GET", "/tools")).json()["commands"]
    assert [command["name"] for command in listed] == ["fine", "pointing"]
    document = (await send(api, "GET", "/openapi.json")).json()
    assert [path for path in document["paths"] if path.startswith("/tools/")] == [
        "/tools/fine",
        "/tools/pointing",
    ]


def test_command_line_works_with_an_invalid_definition() -> None:
    app = make_app_with_invalid_definitions()
    assert invoke(app, "fine", "--json").envelope["result"] == 1
    pointing = invoke(app, "pointing", "--json").envelope
    assert "handoffs= names 'nowhere'" in pointing["meta"]["warnings"][0]
    schema = invoke(app, "--schema")
    assert schema.exit_code == 0
    assert "unreadable" in schema.stderr
    assert invoke(app, "late", "--json").exit_code == 70


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"annotations": ReadOnly | Destructive}, "Destructive"),
        ({"annotations": ReadOnly, "capabilities": ["fs:read", "fs:delete"]}, "fs:delete"),
        ({"annotations": ReadOnly, "capabilities": ("fs:write:./out",)}, "fs:write:./out"),
        ({"annotations": ReadOnly | Idempotent, "capabilities": {"state:mutate"}}, "state:mutate"),
    ],
)
def test_read_only_command_that_declares_a_change(options: Any, named: str) -> None:
    with pytest.raises(DefinitionError, match=f"changes nothing, but it declares .*{named}"):
        Tooli("app").command("x", **options)
    with pytest.raises(DefinitionError, match="changes nothing"):
        Tooli("app").lazy_command("a:b", **options)


def test_read_only_command_may_use_the_network_and_programs() -> None:
    Tooli("app").command("x", annotations=ReadOnly, capabilities=["net:write", "proc:spawn"])
