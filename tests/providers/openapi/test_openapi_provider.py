"""OpenAPIProvider: the operations of a document, called over real connections."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.openapi.api_server import Answer, openapi, operation, parameter
from tests.providers.openapi.test_operations import body

from tooli import Image, Tooli
from tooli.core.tool import Behavior
from tooli.errors import DefinitionError
from tooli.providers import OpenAPIProvider
from tooli.providers.openapi import http_client
from tooli.providers.openapi import openapi_provider as module
from tooli.providers.search import format_signature
from tooli.testing import Case, assert_parity

if TYPE_CHECKING:
    from tests.providers.openapi.api_server import ApiServer, Received

LIST = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("API_TOKEN", "s3cret-t0ken-value")


def app_of(source: Any, api: ApiServer | None = None, **options: Any) -> Tooli:
    """Return an app with the operations of a document, and a command of its own."""
    if api is not None:
        options.setdefault("base_url", api.url)
    app = Tooli("app")

    @app.command()
    def own_command() -> int:
        return 1

    app.add_provider(OpenAPIProvider(source, **options))
    return app


def answers(schema: Any, media_type: str = "application/json") -> dict[str, Any]:
    return {"responses": {"200": {"content": {media_type: {"schema": schema}}}}}


def document_of(path: str = "/", method: str = "get", **more: Any) -> dict[str, Any]:
    return openapi({path: {method: operation(**more)}})


# ------------------------------------------------------------------ calls


def test_a_call_on_every_interface(api: ApiServer) -> None:
    declared = [parameter("id", "path", schema={"type": "integer"}), parameter("q")]
    person = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = {"type": "object", "properties": {"id": {"type": "integer"}}}
    document = document_of(
        "/u/{id}", "put", parameters=declared, **body(person, required=True), **answers(answer)
    )
    api.answer = lambda request: Answer({"id": 7, "sent": json.loads(request.body)})
    app = app_of(document, api)
    arguments = {"id": 7, "q": "a b", "name": "Ada"}
    assert_parity(app, Case("run", arguments))
    assert app.call("run", **arguments).result == {"id": 7, "sent": {"name": "Ada"}}
    assert {(r.method, r.target) for r in api.requests} == {("PUT", "/u/7?q=a%20b")}
    assert_parity(app, Case("run", {"id": "x", "q": "a b"}))


def test_an_error_on_every_interface(api: ApiServer) -> None:
    api.answer = Answer({"detail": [{"loc": ["query", "q"], "msg": "is too long"}]}, status=422)
    document = document_of(parameters=[parameter("q")])
    app = app_of(document, api)
    assert_parity(app, Case("run", {"q": "x"}))
    error = app.call("run", q="x").error
    assert (error.code, error.field) == ("E1000", "q")


def test_what_is_not_given_is_not_sent(api: ApiServer) -> None:
    declared = [parameter("a", schema={"type": "integer", "default": 3}), parameter("b")]
    app = app_of(document_of(parameters=declared), api)
    assert app.call("run").ok
    assert api.last.target == "/"


def test_effects_groups_and_words() -> None:
    methods = ("get", "head", "put", "delete", "post", "patch")
    item = {
        m: operation(operationId=m, tags=["T"], summary=f"Do \x1b[31m{m}", deprecated=m == "put")
        for m in methods
    }
    for declared in item.values():
        declared["tags"] = ["T\x1b[31m", 7]
    marked = operation(operationId="mark", **{"x-tooli-annotations": ["destructive"]})
    app = app_of(openapi({"/": item, "/m": {"post": marked}}))
    tools = {tool.key: tool for tool in app.catalog}
    read_only = Behavior(read_only=True, open_world=True)
    assert [tools[f"t.{m}"].behavior for m in methods] == [
        *(read_only, read_only, Behavior(idempotent=True, open_world=True)),
        Behavior(destructive=True, idempotent=True, open_world=True),
        *(Behavior(open_world=True), Behavior(open_world=True)),
    ]
    assert tools["mark"].behavior.destructive
    assert (tools["t.get"].doc.summary, tools["t.get"].guidance.tags) == ("Do get", ("T",))
    assert tools["t.put"].deprecated is True
    assert app.call("t.delete").error.code == "E1010"


def test_listing_resolves_no_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_operation", lambda *_: pytest.fail("it is not needed"))
    paths = {f"/p{i}": {"get": {"operationId": f"op{i}"}} for i in range(150)}
    assert len(list(app_of(openapi(paths)).catalog)) == 151


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "home": {"type": "object", "properties": {"city": {"type": "object", "properties": {}}}},
        "any": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}]},
        "all": {"allOf": [{"type": "string"}, {"maxLength": 3}]},
        "maybe": {"type": "string", "nullable": True, "default": "x"},
        "secret": {"type": "string", "readOnly": True},
    },
    "required": ["name"],
}
PAGED = [parameter("limit", schema={"type": "integer"}), parameter("cursor")]
RESULTS = {"type": "object", "properties": {"items": LIST, "next": {"type": "string"}}}


@pytest.mark.parametrize(
    "more",
    [
        body(PERSON),
        body({"allOf": [PERSON, {"properties": {"more": PERSON}}]}),
        body({"oneOf": [PERSON, {"type": "string"}]}),
        body({"type": "array", "items": PERSON}),
        body(PERSON, "multipart/form-data"),
        body({"type": "string", "format": "binary"}, "application/octet-stream"),
        {"parameters": PAGED, **answers(RESULTS)},
        {"parameters": PAGED, **answers({"type": "object", "properties": {"one": PERSON}})},
        {"parameters": [parameter("p", schema=PERSON, style="deepObject")]},
        answers({"type": "string"}, "application/pdf"),
        {"parameters": [{"$ref": "#/gone"}]},
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_signatures_need_no_whole_schemas(method: str, more: dict[str, Any]) -> None:
    def find_tool() -> Any:
        return app_of(document_of(method=method, **more)).catalog["run"]

    tool, loaded = find_tool(), find_tool()
    _ = loaded.params
    signature = format_signature(tool)
    assert signature == format_signature(loaded)
    is_loaded = tool.load._tool is not None
    assert is_loaded is (more == {"parameters": [{"$ref": "#/gone"}]})
    _ = tool.params
    assert format_signature(tool) == signature


# ------------------------------------------------------------------ documents


def test_a_relative_path_starts_at_the_file_of_the_caller() -> None:
    provider = OpenAPIProvider("api.json")
    assert provider.source == str(Path(__file__).with_name("api.json"))
    assert provider.name == "api"
    assert OpenAPIProvider("https://api.test/x.json").name == "api.test"
    assert OpenAPIProvider({}).name == "openapi"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.json", "does not exist"),
        ({"info": {}}, "neither `openapi` nor `swagger`"),
        ({"openapi": "5.0"}, "supported are"),
    ],
)
def test_a_document_that_cannot_be_read_hides_no_other_tool(source: Any, message: str) -> None:
    app = app_of(source)
    assert app.call("own-command").result == 1
    assert message in app.call("run").error.message
    assert any(message in problem.message for problem in app.catalog.problems.values())


def test_a_broken_operation_hides_no_other_one(api: ApiServer) -> None:
    paths = {
        "/a": {"get": operation(operationId="good")},
        "/b": {"get": operation(operationId="bad", parameters=[{"$ref": "#/gone"}])},
        "/c": {
            "get": operation(
                operationId="odd",
                responses={"200": {"content": {"a/b": {"schema": {"$ref": 7, "properties": 3}}}}},
            )
        },
        "/d": {
            "get": operation(
                operationId="wrong",
                requestBody={
                    "content": {"application/json": {"encoding": 1, "schema": {"allOf": [3]}}}
                },
            )
        },
    }
    provider = OpenAPIProvider(openapi(paths), base_url=api.url)
    app = Tooli("app")
    app.add_provider(provider)
    assert app.call("good").ok
    broken = app.call("bad", anything=1).error
    assert broken.code == "E4040"
    assert "'#/gone' does not exist" in broken.message
    assert "bad" in provider.problems
    assert app.call("odd").ok
    assert app.call("wrong").ok


def test_a_deeply_nested_operation_is_reported(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(module, "read_operation", read)
    error = app_of(document_of(), api).call("run", a="x").error
    assert error.code == "E4040"
    assert "RecursionError" in error.message


def test_arguments_of_the_provider_are_checked() -> None:
    for options in (
        {"only": "users"},
        {"exclude": "users"},
        {"auth": "token"},
        {"auth": {"key": "token"}},
        {"headers": {"X": "a\nb"}},
        {"headers": {"X": 7}},
    ):
        with pytest.raises(DefinitionError):
            OpenAPIProvider("api.json", **options)


def test_problems_are_reported(tmp_path: Path) -> None:
    app = app_of(document_of(), only=["rum"])
    assert {key.partition("=")[0] for key in app.catalog.problems} == {"only", "servers"}
    assert app_of(openapi({})).catalog.problems
    missing = app_of(document_of()).call("run").error
    assert (missing.code, missing.suggestion["action"]) == ("E4040", "ask_human")
    assert "base_url=" in missing.message


# ------------------------------------------------------------------ credentials

SECURED = {
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    "security": [{"token": []}],
}


def secured(**more: Any) -> dict[str, Any]:
    return openapi({"/": {"get": operation(**more)}}, **SECURED)


def test_credentials_and_headers_are_sent_and_hidden(api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "id.txt").write_text("cl1ent-identifier")
    headers = {"X-Client": f"@{tmp_path / 'id.txt'}", "X-Plain": "text"}
    api.answer = lambda request: Answer({"echo": request.headers})
    result = app_of(secured(), api, auth="env:API_TOKEN", headers=headers).call("run")
    assert api.last.headers["authorization"] == "Bearer s3cret-t0ken-value"
    assert api.last.headers["x-client"] == "cl1ent-identifier"
    assert api.last.headers["x-plain"] == "text"
    shown = json.dumps(result.to_dict())
    assert "s3cret" not in shown
    assert "cl1ent" not in shown
    assert "text" in shown


def test_credentials_in_errors_are_hidden(api: ApiServer) -> None:
    api.answer = lambda request: Answer({"message": request.headers["authorization"]}, status=403)
    error = app_of(secured(), api, auth="env:API_TOKEN").call("run").error
    assert error.code == "E2000"
    assert "s3cret" not in json.dumps(error.to_dict())
    assert "token" in error.suggestion["fix"]


def test_a_missing_credential_sends_nothing(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("API_TOKEN")
    error = app_of(secured(), api, auth="env:API_TOKEN").call("run").error
    assert (error.code, api.requests) == ("E2000", [])
    assert "API_TOKEN is not set" in error.message


def test_a_key_in_the_query_is_not_in_messages(api: ApiServer) -> None:
    scheme = {"type": "apiKey", "in": "query", "name": "key"}
    document = openapi(
        {"/": {"get": operation(parameters=[parameter("key"), parameter("q")])}},
        components={"securitySchemes": {"k": scheme}},
        security=[{"k": []}],
    )
    api.answer = Answer({}, status=500)
    app = app_of(document, api, auth={"k": "env:API_TOKEN"})
    assert app.call("run", key="mine").error.code == "E1004"
    error = app.call("run", q="x").error
    assert api.last.target == "/?q=x&key=s3cret-t0ken-value"
    assert "s3cret" not in json.dumps(error.to_dict())


def test_credentials_without_encryption_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    document = secured() | {"servers": [{"url": "http://api.invalid"}]}
    result = app_of(document, auth="env:API_TOKEN").call("run")
    assert not result.ok
    assert any("without encryption" in warning for warning in result.meta["warnings"])


# ------------------------------------------------------------------ documents from URLs


def test_a_document_from_a_url_cannot_name_private_servers(api: ApiServer) -> None:
    document = document_of() | {"servers": [{"url": "http://127.0.0.2:1/v1"}]}
    document["paths"]["/own"] = {"get": operation(operationId="own"), "servers": [{"url": "/v1"}]}
    api.answer = lambda request: Answer(document if "openapi" in request.target else {"a": 1})
    app = app_of(f"{api.url}/openapi.json")
    assert app.call("own").result == {"a": 1}
    assert api.last.target == "/v1/own"
    error = app.call("run").error
    assert error.code == "E1033"
    assert "private network" in error.message


def test_host_that_changes_its_address(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public host of a document does not lead to a private address later (DNS rebinding)."""
    name = api.url.replace("127.0.0.1", "api.example")
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *rest, **more: resolve("127.0.0.1", *rest, **more)
    )
    monkeypatch.setattr(http_client, "is_private_address", lambda _: False)  # at first
    api.answer = lambda request: Answer(
        document_of() if "openapi" in request.target else {"secret": 1}
    )
    app = app_of(f"{name}/openapi.json")
    error = app.call("run").error
    assert error.code == "E1033"
    assert "private network" in error.message
    assert len(api.requests) == 1


# ------------------------------------------------------------------ pages


def rows(request: Received) -> Answer:
    from urllib.parse import parse_qs, urlsplit

    query = parse_qs(urlsplit(request.target).query)
    start, limit = int(query.get("offset", ["0"])[0]), int(query.get("limit", ["3"])[0])
    found = [{"id": number} for number in range(start, min(start + limit, 5))]
    return Answer({"items": found, "total": 5})


def test_pages(api: ApiServer) -> None:
    number = {"schema": {"type": "integer"}}
    declared = [parameter("limit", **number), parameter("offset", **number)]
    schema = {"type": "object", "properties": {"items": LIST, "total": {"type": "integer"}}}
    api.answer = rows
    app = app_of(document_of(parameters=declared, **answers(schema)), api)
    tool = app.catalog["run"]
    assert list(tool.schema["properties"]) == ["offset"]
    assert tool.guidance.output_schema["type"] == "array"
    first = app.call("run", limit=2)
    assert (first.result, first.meta["page"]["total"]) == ([{"id": 0}, {"id": 1}], 5)
    found, cursor = list(first.result), first.meta["page"].get("next_cursor")
    while cursor is not None:
        page = app.call("run", limit=2, cursor=cursor)
        found += page.result
        cursor = page.meta["page"].get("next_cursor")
    assert [row["id"] for row in found] == [0, 1, 2, 3, 4]
    assert [r.target for r in api.requests] == [
        *("/?limit=2", "/?limit=2&offset=2", "/?limit=2&offset=4"),
    ]
    assert app.call("run", cursor="nonsense").error.code == "E1042"


def test_links_to_the_next_page_keep_credentials_out_of_cursors(api: ApiServer) -> None:
    scheme = {"type": "apiKey", "in": "query", "name": "key"}
    document = openapi(
        {
            "/": {
                "get": operation(
                    parameters=[parameter("page", schema={"type": "integer"})], **answers(LIST)
                )
            }
        },
        components={"securitySchemes": {"k": scheme}},
        security=[{"k": []}],
    )

    def answer(request: Received) -> Answer:
        link = f'<{request.target}&page=2>; rel="next"'
        return Answer([{"id": 1}], headers={} if "page=2" in request.target else {"Link": link})

    api.answer = answer
    app = app_of(document, api, auth="env:API_TOKEN")
    first = app.call("run")
    second = app.call("run", cursor=first.meta["page"]["next_cursor"])
    assert second.ok
    assert api.last.target == "/?page=2&key=s3cret-t0ken-value"
    assert "page" not in second.meta


# ------------------------------------------------------------------ files and content


def test_files(api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    form = {
        "type": "object",
        "properties": {
            "photo": {"type": "string", "format": "binary"},
            "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "note": {"type": "string", "pattern": "^[a-z]+$"},
        },
        "required": ["photo"],
    }
    app = app_of(document_of("/", "post", **body(form, "multipart/form-data", required=True)), api)
    photo = str(tmp_path / "photo.png")
    assert app.call("run", photo=photo, more=[photo, photo], note="x").ok
    assert api.last.body.count(b'filename="photo.png"') == 3
    assert app.call("run", photo=str(tmp_path / "no.png")).error.field == "photo"
    assert app.call("run", note="X").error.details["errors"][0]["field"] in ("photo", "note")
    binary = app_of(document_of("/", "post", **body({}, "image/png", required=True)), api)
    assert binary.call("run", body=photo).ok
    assert (api.last.body, api.last.headers["content-type"]) == (b"\x89PNG", "image/png")


def test_answers_that_are_files(api: ApiServer, tmp_path: Path) -> None:
    api.answer = Answer(b"\x89PNG", headers={"Content-Type": "image/png"})
    app = app_of(document_of(**answers({}, "image/png")), api)
    assert app.call("run").result == Image(b"\x89PNG")
    target = tmp_path / "out.png"
    written = app.call("run", output_file=str(target))
    assert written.result == {"file": str(target), "bytes": 4, "media_type": "image/png"}
    assert target.read_bytes() == b"\x89PNG"
    api.answer = Answer({}, status=500)
    assert not app.call("run", output_file=str(tmp_path / "new.png")).ok
    assert not (tmp_path / "new.png").exists()


def test_answers_that_do_not_fit_the_document_are_warnings(api: ApiServer) -> None:
    api.answer = Answer([{"id": "text"}])
    result = app_of(document_of(**answers(LIST)), api).call("run")
    assert result.result == [{"id": "text"}]
    assert result.meta["warnings"] == [
        "The answer is not as the document says: [0].id must be integer."
    ]


# ------------------------------------------------------------------ deadlines


def test_the_deadline_ends_the_request(api: ApiServer) -> None:
    seen = threading.Event()

    def wait(_: Received) -> Answer:
        seen.set()
        api.release.wait(60)
        return Answer({})

    api.answer = wait
    error = app_of(document_of(), api, timeout=1.5).call("run").error
    assert (error.code, seen.is_set()) == ("E4050", True)
    error = app_of(document_of(), api, timeout=None).options(timeout=0.3).call("run").error
    assert error.code == "E4050"


# ------------------------------------------------------------------ documents of tooli


def test_envelopes_of_tooli_are_opened(api: ApiServer) -> None:
    schema = {"type": "object", "properties": {"result": {"type": "integer"}}}
    document = document_of("/", "post", **{"x-tooli-command": "other add"}, **answers(schema))
    app = app_of(document, api)
    assert app.catalog["run"].guidance.output_schema == {"type": "integer"}
    api.answer = Answer({"ok": True, "result": 3, "meta": {"warnings": ["Careful.", 7]}})
    result = app.call("run")
    assert (result.result, result.meta["warnings"]) == (3, ["Careful."])
    api.answer = Answer({"ok": True, "result": 3, "meta": None})
    assert app.call("run").result == 3
    api.answer = Answer([1])
    assert app.call("run").result == [1]
    error = {"code": "E3010", "message": "Gone."}
    api.answer = Answer({"ok": False, "error": error}, status=404)
    assert app.call("run").error.message == "Gone."
