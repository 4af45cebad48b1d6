"""Resources and prompts: URI templates, registration, arguments, MIME types."""

from __future__ import annotations

import enum
import pathlib
import random
import re
from typing import Any, Literal

import pytest

from tooli import Context, DefinitionError, SecretInput, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.core.call import DEFAULT_OPTIONS, Call, Caller, Failed, Ok, Options
from tooli.pipeline.drivers import run
from tooli.providers.resources import (
    UriTemplate,
    collect_prompts,
    find_resource,
    guess_mime_type,
    iter_resources,
    mime_type_of_annotation,
    texts_to_arguments,
)
from tooli.schema import RawText


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


# ------------------------------------------------------------------ templates


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("notes://{id}", "notes://7", {"id": "7"}),
        ("notes://{id}", "notes://a%20b%2Fc", {"id": "a b/c"}),
        ("notes://{id}", "notes://7/more", None),
        ("notes://{id}", "notes://", None),
        ("notes://{id}", "other://7", None),
        ("notes://{id}/lines/{line}", "notes://7/lines/3", {"id": "7", "line": "3"}),
        ("files://{path*}", "files://a/b/c.txt", {"path": "a/b/c.txt"}),
        ("files://{+path}", "files://a/b/c.txt", {"path": "a/b/c.txt"}),
        ("files://{path*}/raw", "files://a/b/raw", {"path": "a/b"}),
        ("files://{path*}", "files://a/../../etc/passwd", None),
        ("files://{path*}", "files://a/%2e%2e/b", None),
        ("files://{path*}", "files://..%5Cb", None),
        ("files://{path*}", "files://a%00b", None),
        ("files://{path*}", "files://a/..b/c", {"path": "a/..b/c"}),
        ("notes://{id}", "notes://%ff", None),
        ("a://x.y", "a://x.y", {}),
        ("a://x.y", "a://xzy", None),
        ("a://{n}.txt", "a://b.txt", {"n": "b"}),
        ("a://{n}.txt", "a://bxtxt", None),
    ],
)
def test_uri_matches_its_template(template: str, uri: str, found: dict[str, str] | None) -> None:
    assert UriTemplate(template).match(uri) == found


def test_match_equals_a_greedy_pattern() -> None:
    rng, patterns = random.Random(7), {"=": "([^/?#]+)", "*": "(.+)"}
    matched = 0
    for _ in range(3000):
        kinds = [rng.choice("=*") for _ in range(rng.randint(1, 4))]
        literals = ["".join(rng.choices("a-/", k=rng.randint(1, 2))) for _ in kinds]
        texts = [f"{{p{i}}}" if kind == "=" else f"{{p{i}*}}" for i, kind in enumerate(kinds)]
        pairs = list(zip(literals, kinds, texts, strict=True))
        template = UriTemplate("x:" + "".join([literal + text for literal, _, text in pairs]))
        pattern = "x:" + "".join(
            [re.escape(literal) + patterns[kind] for literal, kind, _ in pairs]
        )
        uri = "x:" + "".join(rng.choices("a-/b\n", weights=(6, 4, 4, 1, 0.2), k=12))
        expected = re.fullmatch(pattern, uri)
        found = template.match(uri)
        groups = None if expected is None else expected.groups()
        assert (None if found is None else tuple(found.values())) == groups
        matched += found is not None
    assert matched > 100


@pytest.mark.parametrize("template", ["x://{a}-{b}-{c}-{d}-{e}-{f}", "x://{a*}/{b*}/{c*}/{d*}/z"])
def test_match_of_a_hostile_uri_ends(template: str) -> None:
    assert UriTemplate(template).match(f"x://{'-/' * 1000}?") is None
    assert UriTemplate(template).match(f"x://{'-' * 2000}?") is None


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("no-scheme", "starts with a scheme"),
        ("://x", "starts with a scheme"),
        ("x:", "starts with a scheme"),
        ("x://{a", "is not a parameter"),
        ("x://a}", "without a"),
        ("x://{}", "is not a parameter"),
        ("x://{a-b}", "is not a parameter"),
        ("x://{?q}", "is not a parameter"),
        ("x://{a}/{a}", "twice"),
        ("x://{a}{b}", "need a separator"),
    ],
)
def test_invalid_template_is_a_definition_error(template: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        UriTemplate(template)


def test_most_specific_template_is_chosen() -> None:
    app = Tooli("app")
    for uri in ("n://{path*}", "n://{id}", "n://{id}/info", "n://7/info", "n://{id}/{part}"):
        app.resource(uri)(make_function(uri))
    resources = list(iter_resources(app))

    def found(uri: str) -> str:
        hit = find_resource(resources, uri)
        assert hit is not None
        return hit[0].uri

    assert found("n://7/info") == "n://7/info"
    assert found("n://8/info") == "n://{id}/info"
    assert found("n://8/else") == "n://{id}/{part}"
    assert found("n://8") == "n://{id}"
    assert found("n://8/a/b") == "n://{path*}"
    assert find_resource(resources, "m://8") is None


def make_function(uri: str) -> Any:
    names = ", ".join(UriTemplate(uri).names)
    space: dict[str, Any] = {}
    exec(f"def fn({names}): return ''", space)
    return space["fn"]


# ------------------------------------------------------------------ declaring


def test_registered_functions_are_unchanged() -> None:
    app = Tooli("app")

    @app.resource("n://{id}")
    def note(id: int) -> str:
        return f"note {id}"

    @app.prompt()
    def review(code: str) -> str:
        return f"Review {code}"

    assert note(3) == "note 3"
    assert review("x") == "Review x"
    assert list(app.catalog) == []


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda app: app.resource("n://x", titel="x"), "did you mean 'title'"),
        (lambda app: app.prompt("x", descripton="x"), "did you mean 'description'"),
        (lambda app: app.resource("n://{ident}")(lambda iden: ""), "did you mean 'iden'"),
        (lambda app: app.resource("n://{id}")(lambda: ""), "no parameter 'id'"),
        (lambda app: app.resource("n://{a}", complete={"b": []})(lambda a: ""), "no parameter 'b'"),
        (lambda app: app.prompt(complete={"b": []})(lambda a: ""), "no parameter 'b'"),
        (
            lambda app: app.command(resource="n://x")(lambda: ""),
            "only a command with annotations=ReadOnly",
        ),
        (
            lambda app: app.command(resource="n://x", annotations=Destructive)(lambda: ""),
            "only a command with annotations=ReadOnly",
        ),
        (lambda app: app.command(resorce="n://x"), "did you mean 'resource'"),
        (
            lambda app: app.resource("n://x")(make_function("x://{a}")),
            r"the URI has no \{a\} for the parameter",
        ),
        (lambda app: app.resource(make_function("x://{a}")), "write @app.resource"),
        (lambda app: app.prompt(make_function("x://{a}")), "write @app.prompt"),
    ],
)
def test_invalid_declaration_is_a_definition_error(declare: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        declare(Tooli("app"))


def test_injected_and_undefined_parameters_are_not_required() -> None:
    app = Tooli("app")

    def injected(ctx: Context, size: int = 1) -> str:
        return ""

    def later(a: Later) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    app.resource("n://x")(injected)
    app.resource("n://y")(later)
    assert len(list(iter_resources(app))) == 2


def test_command_with_a_resource_uri_is_listed_as_a_resource() -> None:
    app = Tooli("app")

    @app.command(annotations=ReadOnly, resource="n://{id}", auth=["notes"])
    def note(id: int) -> dict[str, int]:
        """One note."""
        return {"id": id}

    (resource,) = iter_resources(app)
    assert resource.uri == "n://{id}"
    assert resource.name == "note"
    assert resource.description == "One note."
    assert resource.mime_type == "application/json"
    tool = resource.tool(app._state)
    assert tool.guard.scopes == ("notes",)
    assert tool.behavior.read_only
    assert [tool.name for tool in app.catalog] == ["note"]


def test_resource_of_a_command_inherits_its_guard() -> None:
    app = Tooli("app")

    @app.resource("n://x")
    @app.command(requires_approval=True, auth=["admin"], isolation="required", rate_limit="2/hour")
    def secret() -> str:
        return "s"

    (resource,) = iter_resources(app)
    tool = resource.tool(app._state)
    assert tool.guard.approval
    assert tool.guard.scopes == ("admin",)
    assert tool.guard.isolation == "required"
    assert tool.limits.rate_limit == "2/hour"


def test_resource_of_a_command_of_another_app_inherits_its_guard() -> None:
    app, admin = Tooli("app"), Tooli("admin")
    app.add_typer(admin)

    @app.resource("n://x")
    @admin.command(requires_approval=True, auth=["admin"])
    def secret() -> str:
        return "s"

    (resource,) = iter_resources(app)
    guard = resource.tool(app._state).guard
    assert (guard.approval, guard.scopes) == (True, ("admin",))


def test_second_registration_replaces_the_first() -> None:
    app = Tooli("app")
    app.resource("n://x", title="one")(lambda: "1")
    app.resource("n://y")(lambda: "2")
    app.resource("n://x", title="other")(lambda: "3")
    app.prompt("p", title="one")(lambda: "1")
    app.prompt("p", title="other")(lambda: "1")
    assert next(iter_resources(app)).title == "other"
    assert [r.uri for r in iter_resources(app)] == ["n://x", "n://y"]
    assert collect_prompts(app)["p"].title == "other"


def test_resources_and_prompts_of_groups_are_included() -> None:
    app, users, deep = Tooli("app"), Tooli("users"), Tooli("deep")
    app.resource("n://a")(lambda: "")
    users.resource("n://b")(lambda: "")
    deep.resource("n://c")(lambda: "")
    app.prompt("greet")(lambda: "outer")
    users.prompt("greet")(lambda: "inner")
    deep.prompt("leave")(lambda: "")
    app.add_typer(users)
    users.add_typer(deep)
    assert [r.uri for r in iter_resources(app)] == ["n://a", "n://b", "n://c"]
    assert list(collect_prompts(app)) == ["greet", "users_greet", "leave"]


def test_registrations_notify_listeners_and_increase_the_revision() -> None:
    app, users = Tooli("app"), Tooli("users")
    app.add_typer(users)
    changes: list[tuple[str, str | None]] = []
    app._state.change_listeners.append(lambda what, uri: changes.append((what, uri)))
    before = app._state.revision
    users.resource("n://x")(lambda: "")
    app.prompt("p")(lambda: "")
    app.command("c")(lambda: "")
    users.announce("n://x")
    assert changes == [
        ("resources", None),
        ("prompts", None),
        ("tools", None),
        ("resource", "n://x"),
    ]
    assert app._state.revision == before + 3


# ------------------------------------------------------------------ arguments


def test_texts_are_converted_like_command_line_arguments() -> None:
    app = Tooli("app")
    seen: dict[str, Any] = {}

    @app.prompt()
    def many(
        number: int,
        ratio: float,
        flag: bool,
        color: Color,
        kind: Literal["a", "b"],
        path: pathlib.Path,
        data: dict[str, int],
        ctx: Context,
    ) -> str:
        seen.update(locals())
        return ""

    tool = collect_prompts(app)["many"].tool(app._state)
    texts = {
        "number": "7",
        "ratio": "1.5",
        "flag": "true",
        "color": "green",
        "kind": "b",
        "path": "a/b",
        "data": '{"x": 1}',
    }
    call, stages = app.prepare(
        Call(tool, texts_to_arguments(tool, texts), Caller("mcp"), [], DEFAULT_OPTIONS)
    )
    assert isinstance(run(call, stages), Ok)
    assert {key: seen[key] for key in texts} == {
        "number": 7,
        "ratio": 1.5,
        "flag": True,
        "color": Color.GREEN,
        "kind": "b",
        "path": pathlib.Path("a/b"),
        "data": {"x": 1},
    }


def test_text_that_starts_with_at_sign_reads_no_file(tmp_path: pathlib.Path) -> None:
    app = Tooli("app")
    secret = tmp_path / "secret.json"
    secret.write_text('{"x": 1}')

    @app.prompt()
    def show(data: dict[str, int]) -> str:
        return str(data)

    tool = collect_prompts(app)["show"].tool(app._state)
    assert texts_to_arguments(tool, {"data": f"@{secret}"}) == {"data": f"@{secret}"}


@pytest.mark.parametrize("prefix", ["@", "env:", "-", "plain "])
def test_secret_of_a_client_is_its_value(
    prefix: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client cannot make the server read a file, a variable or stdin."""
    file = tmp_path / "file"
    file.write_text("content of a file")
    monkeypatch.setenv(str(file), "content of a variable")
    app = Tooli("app")
    seen: list[object] = []

    @app.prompt()
    def show(key: SecretInput) -> str:  # type: ignore[type-arg]
        seen.append(key.reveal())
        return "done"

    text = prefix if prefix == "-" else f"{prefix}{file}"
    tool = collect_prompts(app)["show"].tool(app._state)
    arguments = texts_to_arguments(tool, {"key": text})
    call, stages = app.prepare(Call(tool, arguments, Caller("mcp"), [], DEFAULT_OPTIONS))
    assert isinstance(run(call, stages), Ok)
    assert seen == [text]


def test_arguments_with_unknown_names_are_unchanged() -> None:
    app = Tooli("app")
    app.prompt("p")(make_function("x://{a}"))
    tool = collect_prompts(app)["p"].tool(app._state)
    arguments = texts_to_arguments(tool, {"a": "1", "z": "2"})
    assert isinstance(arguments["a"], RawText)
    assert arguments["z"] == "2"


# ------------------------------------------------------------------ MIME types and completions


def test_mime_type_is_guessed_from_the_uri_or_annotation() -> None:
    assert guess_mime_type("n://a/readme.md") == "text/markdown"
    assert guess_mime_type("n://a.b/readme") is None
    assert guess_mime_type("n://{id}.json?x=1.png") == "application/json"
    assert guess_mime_type("https://example.com") is None
    assert mime_type_of_annotation(str) == "text/plain"
    assert mime_type_of_annotation(bytes) == "application/octet-stream"
    assert mime_type_of_annotation(dict[str, int]) == "application/json"
    assert mime_type_of_annotation(Any) is None


def test_explicit_mime_type_precedes_uri_and_annotation() -> None:
    app = Tooli("app")

    def text() -> str:
        return ""

    app.resource("n://a.md")(text)
    app.resource("n://b.md", mime_type="text/x-own")(text)
    app.resource("n://c")(text)
    mime_types = [resource.mime_type for resource in iter_resources(app)]
    assert mime_types == ["text/markdown", "text/x-own", "text/plain"]


def test_permissions_of_the_app_apply_to_resources(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_text("not for everybody")
    app = Tooli("held", permissions=["none"], security_policy="strict")

    @app.resource("file://it", auth=())
    def it() -> str:
        return path.read_text()

    (resource,) = iter_resources(app)
    tool = resource.tool(app._state)
    assert tool.guard.app_permissions == (("none",),)
    call, stages = app.prepare(Call(tool, {}, Caller("mcp"), [], Options()))
    outcome = run(call, stages)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "E2003"
