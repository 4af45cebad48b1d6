"""OpenAPIProvider: the operations of an OpenAPI document as tools.

    app.add_provider(OpenAPIProvider("openapi.json", auth="env:TOKEN"), namespace="shop")

    document ─▶ index ─▶ DeferredTool, …            when the tools are listed
                           └─▶ Operation ─▶ tool    when one is described or called

docs/openapi-provider.md has examples.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import RLock

from tooli.core import Record
from tooli.core.result_types import Page
from tooli.core.tool import Behavior, ListOf, Param, Tool
from tooli.errors import DefinitionError, DependencyError, Suggestion, calling_location
from tooli.inputs.output import Output, OutputShape
from tooli.inputs.source import Input, SourceShape
from tooli.inputs.urls import TOTAL_TIMEOUT_SECONDS, RequestDeadline, display_url
from tooli.providers.deferred_tool import deferred_tool
from tooli.providers.openapi.answers import find_mismatch, read_answer
from tooli.providers.openapi.document_loader import is_url, load_document
from tooli.providers.openapi.error_answers import read_error
from tooli.providers.openapi.http_client import ApiAnswer, ApiRequest, origin_of, send
from tooli.providers.openapi.operation_index import (
    Entry,
    check_version,
    read_index,
    select_entries,
)
from tooli.providers.openapi.operations import Operation, read_operation
from tooli.providers.openapi.paging import (
    PageArguments,
    Paging,
    find_paging,
    items_schema,
    page_arguments,
    read_page,
    without_credentials,
)
from tooli.providers.openapi.request_builder import build_request
from tooli.providers.openapi.security_schemes import Authenticator, check_source, read_source
from tooli.providers.openapi.servers import ServerFinder
from tooli.providers.provider import Provider, described_tool
from tooli.schema.described import make_check

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.pipeline.context import Context
    from tooli.providers.openapi.document import Document

DEFAULT_TIMEOUT_SECONDS = 60.0
"""The default for `timeout=`, in seconds."""
_EFFECTS = {
    "get": Behavior(read_only=True, open_world=True),
    "head": Behavior(read_only=True, open_world=True),
    "options": Behavior(read_only=True, open_world=True),
    "trace": Behavior(read_only=True, open_world=True),
    "query": Behavior(read_only=True, open_world=True),
    "put": Behavior(idempotent=True, open_world=True),
    "delete": Behavior(destructive=True, idempotent=True, open_world=True),
}
_OTHER_EFFECTS = Behavior(open_world=True)
_INVALID_DOCUMENT = (
    *(DefinitionError, AttributeError, KeyError, TypeError, ValueError),
    RecursionError,
)
_OUTPUT_NAMES = ("output_file", "output_file_path")
_DESTRUCTIVE = Behavior(destructive=True, open_world=True)


class OpenAPIProvider(Provider):
    """A provider of the operations of an API that an OpenAPI document describes.

    Swagger 2.0, OpenAPI 3.0 and 3.1 are supported, in JSON and YAML. An operation has the name of
    its `operationId`, in the group of its first tag.

    Args:
        source: The path or the URL of the document, or the document as a dict. A relative path
            starts at the folder of the file that calls this.
        base_url: The URL of the API. It replaces the servers in the document.
        auth: Where the credential is: `env:NAME`, `@FILE`, or a `SecretInput`. A dict has one for
            each security scheme. Credentials are sent to the servers of the document only.
        only: The operations that are wanted: names, ids, tags, paths or `GET /path`. `*` stands for
            any text.
        exclude: The operations that are left out.
        headers: More headers of each request. A value can be `env:NAME` or `@FILE`.
        server_variables: The values of variables in the URLs of servers.
        name: The name in messages. The default is the name of the file or the host.
        timeout: Maximum number of seconds of a request; None if there is no limit.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, object],
        *,
        base_url: str | None = None,
        auth: Any = None,
        only: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        headers: Mapping[str, str] | None = None,
        server_variables: Mapping[str, str] | None = None,
        name: str = "",
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        file, _, _ = calling_location().rpartition(":")
        is_file = os.path.isfile(file)
        self._folder = os.path.dirname(os.path.abspath(file)) if is_file else os.getcwd()
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            source = path if is_url(path) else os.path.join(self._folder, path)
        self.source: str | Mapping[str, object] = source
        _check_arguments(auth, headers, only, exclude)
        self.base_url = base_url
        self.auth = auth
        self.only = only
        self.exclude = exclude
        self.headers = dict(headers or {})
        self.server_variables = server_variables
        self.timeout = timeout
        self.name = name or _name_of(self.source)
        self.description = f"Operations of {self.name}."
        self._problems: dict[str, str] = {}
        self._lock = RLock()

    def tools(self) -> Iterator[Tool]:
        """Return the operations. Each is resolved when it is first described or called."""
        with self._lock:
            self._problems = {}
            api = _Api(self, self._problems)
            entries = read_index(api.document, self._problems)
            chosen = list(select_entries(entries, self.only, self.exclude, self._problems))
            if not entries:
                self._problems["paths"] = "the document has no operations"
        return (api.make_tool(entry) for entry in chosen)

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong with the document, and with the operations that were resolved."""
        return self._problems


def _name_of(source: object) -> str:
    if not isinstance(source, str):
        return "openapi"
    if is_url(source):
        return origin_of(source)[1]
    return os.path.splitext(os.path.basename(source))[0]


def _check_arguments(
    auth: Any, headers: Mapping[str, str] | None, only: object, exclude: object
) -> None:
    """Raise a DefinitionError if an argument of the provider is not valid."""
    for keyword, patterns in (("only", only), ("exclude", exclude)):
        if isinstance(patterns, str):
            raise DefinitionError(f"{keyword}={patterns!r}: must be a list of names")
    if hasattr(auth, "keys"):
        for scheme, value in auth.items():
            check_source(value, f"auth[{scheme!r}]")
    elif auth is not None:
        check_source(auth, "auth")
    for header, value in (headers or {}).items():
        check_source(value, f"headers[{header!r}]", allows_text=True)
        if hasattr(value, "reveal") or any([ord(c) < 0x20 or ord(c) == 0x7F for c in value]):
            raise DefinitionError(f"headers[{header!r}]: must be text without line breaks")


class _Resolved(Record):
    """An operation, how it pages, and the parameter that names the file for its answer."""

    operation: Operation
    paging: Paging | None
    output_name: str | None


class _Api:
    """A document, and how its operations are called."""

    def __init__(self, provider: OpenAPIProvider, problems: dict[str, str]) -> None:
        document, loaded = load_document(provider.source)
        self.document: Document = document
        self._version = check_version(document)
        self._provider = provider
        self._problems = problems
        self._folder = provider._folder
        self._servers = ServerFinder(
            document,
            self._version,
            loaded.url,
            loaded.is_private,
            provider.base_url,
            provider.server_variables,
        )
        self._authenticator = Authenticator(
            document, self._version, provider.auth, provider._folder
        )
        if loaded.warning:
            problems["document"] = loaded.warning
        try:
            self._servers.find()
        except DefinitionError as error:
            problems["servers"] = error.message

    # -------------------------------------------------------------- tools

    def make_tool(self, entry: Entry) -> Tool:
        """Return the tool of an operation, which is not resolved yet."""
        effects = _EFFECTS.get(entry.method, _OTHER_EFFECTS)
        if entry.is_destructive:
            effects = _DESTRUCTIVE
        summary = entry.summary or entry.label
        about = entry.description if entry.description != entry.summary else ""
        return deferred_tool(
            entry.key,
            lambda: self._load_tool(entry),
            outline=lambda: self._read_outline(entry),
            description=f"{summary.strip()}\n\n{about}".strip(),
            annotations=effects,
            stops_itself=True,
            returns_page=entry.method == "get",
            tags=list(entry.tags),
            timeout=self._provider.timeout,
            deprecated=entry.is_deprecated,
        )

    def _load_tool(self, entry: Entry) -> Tool:
        """Return the tool of an operation, resolved. An invalid operation cannot be called."""
        try:
            return self._resolve_tool(entry)
        except _INVALID_DOCUMENT as failure:
            # The document is not valid. Any type of value may be anywhere in it.
            known = isinstance(failure, DefinitionError)
            reason = failure.message if known else f"the document is not valid here ({failure!r})"
            text = f"{entry.label}: {reason}"
            self._problems[entry.key] = text
            anything: JsonObject = {"type": "object", "additionalProperties": True}
            return described_tool(
                entry.key, _refusal(text), input_schema=anything, stops_itself=True
            )

    def _read_outline(self, entry: Entry) -> JsonObject | None:
        """Return the schema of the arguments for a signature; None if the operation is invalid."""
        try:
            return self._resolve(entry, is_outline=True)[1]
        except _INVALID_DOCUMENT:
            return None

    def _resolve(self, entry: Entry, *, is_outline: bool) -> tuple[_Resolved, JsonObject]:
        """Return an operation, and the schema of its arguments."""
        hidden = self._authenticator.parameters
        operation = read_operation(
            self.document, self._version, entry, hidden, is_outline=is_outline
        )
        paging = find_paging(operation)
        schema = operation.input_schema
        output_name = None
        if operation.returns_file:
            output_name = next((n for n in _OUTPUT_NAMES if n not in schema["properties"]), None)
        if paging is not None:
            schema = _without(schema, paging.replaced)
        if output_name is not None:
            schema = _with_output(schema, output_name)
        return _Resolved(operation, paging, output_name), schema

    def _resolve_tool(self, entry: Entry) -> Tool:
        resolved, schema = self._resolve(entry, is_outline=False)
        operation, paging, output_name = resolved.operation, resolved.paging, resolved.output_name
        output = operation.output_schema
        if output is not None and paging is not None:
            output = items_schema(paging, output)
        if operation.is_tooli and output is not None:
            output = output.get("properties", {}).get("result")

        def call(arguments: JsonObject, ctx: Context) -> object:
            return self._call(resolved, arguments, ctx)

        tool = described_tool(
            entry.key,
            call,
            input_schema=schema,
            output_schema=output or None,
            description=entry.summary,
            stops_itself=True,
        )
        return _with_files(tool, operation, output_name).replace(may_have_secrets=True)

    # -------------------------------------------------------------- calls

    def _call(self, resolved: _Resolved, arguments: JsonObject, ctx: Context) -> Any:
        operation, paging = resolved.operation, resolved.paging
        output: Output | None = arguments.pop(resolved.output_name or "", None)
        asked = PageArguments(arguments)
        if paging is not None:
            asked = page_arguments(paging, ctx.page, arguments)
        request = self._build(operation, asked, ctx)
        seconds = ctx.remaining_time()
        deadline = RequestDeadline(TOTAL_TIMEOUT_SECONDS if seconds is None else seconds)
        ctx.on_stop(deadline.stop)
        try:
            answer = send(request, deadline)
            try:
                return self._read(resolved, asked, request, answer, output, ctx)
            finally:
                answer.close()
        finally:
            deadline.cancel()

    def _build(self, operation: Operation, asked: PageArguments, ctx: Context) -> ApiRequest:
        """Return the request. No credential is read if the arguments are not valid."""
        try:
            url = self._servers.find(operation.servers)
        except DefinitionError as error:
            raise DependencyError(
                error.message,
                suggestion=Suggestion(
                    "ask_human", "Pass base_url= to the OpenAPIProvider, or --base-url to tooli."
                ),
            ) from None
        credentials = self._authenticator.credentials(operation)
        headers = {
            name: read_source(value, f"headers[{name!r}]", self._folder)
            for name, value in self._provider.headers.items()
        }
        query = asked.query
        if query is not None:
            query = without_credentials(query, self._hidden_query)
        if url.startswith("http:") and (credentials or headers) and not _is_local(url):
            ctx.warn(f"The credentials for {display_url(url)} are sent without encryption.")
        request = build_request(operation, url, asked.arguments, credentials, headers, query)
        return request.replace(allows_private=self._servers.allows_private(url))

    def _read(
        self,
        resolved: _Resolved,
        asked: PageArguments,
        request: ApiRequest,
        answer: ApiAnswer,
        output: Output | None,
        ctx: Context,
    ) -> Any:
        operation, paging = resolved.operation, resolved.paging
        if answer.status >= 300:
            raise read_error(answer, operation, self._authenticator.schemes_of(operation))
        value = read_answer(answer, output)
        if output is not None:
            return value
        if operation.is_tooli:
            return _unwrap_envelope(value, ctx)
        schema = operation.output_schema
        mismatch = None if schema is None else find_mismatch(value, schema)
        if mismatch is not None:
            ctx.warn(f"The answer is not as the document says: {mismatch}.")
        if paging is None:
            return value
        page: Any = read_page(paging, asked, answer, request.url, value)
        if page.__class__ is Page and page.next_cursor is not None:
            page.next_cursor = without_credentials(page.next_cursor, self._hidden_query)
        return page

    @property
    def _hidden_query(self) -> frozenset[str]:
        """The names of the parameters in a query that are credentials."""
        parameters = self._authenticator.parameters
        return frozenset([name for name, location in parameters if location == "query"])


def _refusal(text: str) -> Callable[[JsonObject], object]:
    """Return the function of an operation that cannot be called."""

    def refuse(_: JsonObject) -> object:
        fix = "Correct the document, or use another tool."
        raise DependencyError(text, suggestion=Suggestion("use_different_tool", fix))

    return refuse


def _is_local(url: str) -> bool:
    return origin_of(url)[1] in ("localhost", "127.0.0.1", "::1")


def _unwrap_envelope(value: Any, ctx: Context) -> Any:
    """Return the result in an envelope of tooli, and pass its warnings on."""
    if not hasattr(value, "keys") or value.get("ok") is not True or "meta" not in value:
        return value
    for warning in value["meta"].get("warnings", ()) if hasattr(value["meta"], "get") else ():
        if isinstance(warning, str):
            ctx.warn(warning)
    return value.get("result")


def _without(schema: JsonObject, names: frozenset[str]) -> JsonObject:
    """Return an input schema without some properties, which are not required."""
    properties = {name: part for name, part in schema["properties"].items() if name not in names}
    return {**schema, "properties": properties}


def _with_output(schema: JsonObject, name: str) -> JsonObject:
    description = "The file to write the answer to. Without it, the answer is part of the result."
    part = {"type": "string", "description": description}
    return {**schema, "properties": {**schema["properties"], name: part}}


def _with_files(tool: Tool, operation: Operation, output_name: str | None) -> Tool:
    """Return a tool whose files are read and written by the rules for the files of callers."""
    uploads: frozenset[str] = operation.body.uploads if operation.body else frozenset()
    if output_name is None and not uploads:
        return tool
    params: list[Param] = []
    for param in tool.params:
        if param.name == output_name:
            param = param.replace(shape=OutputShape(), annotation=Output, exact_type=None)
        elif param.name in uploads:
            param = _with_input(param)
        params.append(param)
    schema: Any = tool.schema
    files = uploads | {output_name or ""}
    properties = {n: p for n, p in schema["properties"].items() if n not in files}
    required = [name for name in schema.get("required", ()) if name not in files]
    checked = {**schema, "properties": properties, "required": required}
    plain = tuple([param for param in params if param.name in properties])
    return tool.replace(
        params=tuple(params),
        has_handles=True,
        argument_check=make_check(checked, plain, tool.key),
    )


def _with_input(param: Param) -> Param:
    """Return the parameter of an upload: a file, or a list of files."""
    shape: Any = SourceShape(Path)
    annotation: Any = Input
    if (param.schema or {}).get("type") == "array":
        shape, annotation = ListOf(shape), list[Input]
    return param.replace(shape=shape, annotation=annotation, exact_type=None)
