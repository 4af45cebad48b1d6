"""Build the request of an operation from its arguments."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote, unquote

from tooli.errors import InputError
from tooli.providers.openapi.http_client import ApiRequest
from tooli.providers.openapi.operations import is_json_type
from tooli.providers.openapi.parameter_styles import (
    check_header,
    cookie_parts,
    encode,
    header_text,
    path_text,
    query_parts,
    to_text,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.operations import ApiParameter, Body, Operation
    from tooli.providers.openapi.security_schemes import Credential

_MIME_TYPES = {
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
    ".csv": "text/csv",
    ".html": "text/html",
    ".xml": "application/xml",
    ".zip": "application/zip",
}
_ACCEPT_JSON = "application/json, */*;q=0.5"


def build_request(
    operation: Operation,
    base_url: str,
    arguments: Mapping[str, Any],
    credentials: Sequence[Credential] = (),
    headers: Mapping[str, str] | None = None,
    query: str | None = None,
) -> ApiRequest:
    """Return the request of an operation.

    Args:
        operation: The operation.
        base_url: The URL of its server.
        arguments: The arguments, checked against the input schema.
        credentials: What is added for authentication.
        headers: More headers.
        query: Replaces the query: that of the next page, as the server has sent it.
    """
    places = _Places(operation, headers or {})
    for parameter in operation.parameters:
        if parameter.name in arguments:
            places.add(parameter, arguments[parameter.name])
    _check_dots(operation, places.path)
    if query is not None:
        places.query = [query] if query else []
    for credential in credentials:
        places.add_credential(credential)
    sent = places.headers
    if places.cookies:
        sent["Cookie"] = "; ".join(places.cookies)
    body = None
    if operation.body is not None:
        content_type, body = encode_body(operation.body, arguments)
        if body is not None:
            sent["Content-Type"] = content_type
    search = f"?{'&'.join(places.query)}" if places.query else ""
    url = base_url.rstrip("/") + encode_path(places.path) + search
    return ApiRequest(operation.entry.method.upper(), url, sent, body)


class _Places:
    """The parts of a request that arguments and credentials are written to."""

    def __init__(self, operation: Operation, headers: Mapping[str, str]) -> None:
        path, question_mark, fixed = operation.entry.path.partition("#")[0].partition("?")
        self.path = path
        self.query = [_encode_fixed(fixed)] if question_mark else []
        self.headers = {"User-Agent": "tooli", **headers, "Accept": _accept_header(operation)}
        self.cookies: list[str] = []

    def add(self, parameter: ApiParameter, value: Any) -> None:
        """Add an argument."""
        name, wire_name, explode = parameter.name, parameter.wire_name, parameter.explode
        if parameter.is_json and not isinstance(value, str):
            value = json.dumps(value)
        if parameter.location == "path":
            text = path_text(wire_name, value, parameter.style, explode)
            self.path = self.path.replace(f"{{{wire_name}}}", _check_segment(parameter, text))
        elif parameter.location == "query":
            reserved = parameter.allow_reserved
            self.query += query_parts(
                wire_name, value, parameter.style, explode, allow_reserved=reserved
            )
        elif parameter.location == "cookie":
            self.cookies += cookie_parts(wire_name, value, explode)
        else:
            self.headers[wire_name] = check_header(wire_name, header_text(value, explode), name)

    def add_credential(self, credential: Credential) -> None:
        """Add a credential."""
        pair = f"{encode(credential.name)}={encode(credential.value)}"
        if credential.location == "header":
            self.headers[credential.name] = credential.value
        elif credential.location == "cookie":
            self.cookies.append(pair)
        else:
            self.query.append(pair)


def _encode_fixed(query: str) -> str:
    """Return the query that is a part of the path in a document."""
    return quote(query, safe="-._~!$&'()*+,;=:@%/?")


def encode_path(path: str) -> str:
    """Return a path whose parameters are encoded already, with its other characters encoded."""
    return quote(path if path.startswith("/") else f"/{path}", safe="/-._~!$&'()*+,;=:@%")


def _accept_header(operation: Operation) -> str:
    """Return the media types of the answer that are wanted: JSON, if it is documented or likely."""
    types = operation.response_types
    if not types or "application/json" in types or "*/*" in types:
        return _ACCEPT_JSON
    best = next((t for t in types if is_json_type(t)), types[0])
    clean = "".join([char for char in best if " " <= char <= "~"])
    return f"{clean}, application/json;q=0.9, */*;q=0.5"


def _check_segment(parameter: ApiParameter, text: str) -> str:
    if text in ("", ".", ".."):
        raise InputError(
            f"{parameter.name!r} must not be empty, `.` or `..`: it is a part of the path.",
            code="E1030",
            field=parameter.name,
        )
    return text


def _check_dots(operation: Operation, path: str) -> None:
    """Raise an InputError if the arguments have made a segment of the path `.` or `..`.

    Some servers and proxies decode `..%2Fadmin` before they choose what to serve.
    """
    declared = operation.entry.path.split("/")
    for segment in path.split("/"):
        if segment not in declared and not {".", ".."}.isdisjoint(_SLASHES.split(unquote(segment))):
            raise InputError("A segment of the path must not be `.` or `..`.", code="E1030")


_SLASHES = re.compile(r"[/\\]")


# ------------------------------------------------------------------ bodies


def encode_body(body: Body, arguments: Mapping[str, Any]) -> tuple[str, bytes | None]:
    """Return the content type and the body of a request; None if no part of it is given."""
    if body.fields is None:
        if body.argument not in arguments:
            return body.media_type, None
        return _encode_value(body, arguments[body.argument])
    given = {wire: arguments[name] for name, wire in body.fields.items() if name in arguments}
    if not given and not body.is_required:
        return body.media_type, None
    return _encode_value(body, given)


def _encode_value(body: Body, value: Any) -> tuple[str, bytes]:
    if body.kind == "json":
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return body.media_type, text.encode("utf-8", "replace")
    if body.kind == "binary":
        return body.media_type, _file_content(value)
    if is_object(value) and body.kind == "form":
        return body.media_type, "&".join(_form_parts(body, value)).encode()
    if is_object(value) and body.kind == "multipart":
        return _encode_multipart(body, value)
    return body.media_type, to_text(value).encode("utf-8", "replace")


def _form_parts(body: Body, value: JsonObject) -> Iterator[str]:
    for name, item in value.items():
        encoding: Any = body.encodings.get(name)
        encoding = encoding if is_object(encoding) else {}
        default = "deepObject" if is_object(item) or _has_objects(item) else "form"
        style = encoding.get("style")
        style = style if isinstance(style, str) else default
        explode = encoding.get("explode")
        explode = explode if isinstance(explode, bool) else style in ("form", "deepObject")
        for part in query_parts(str(name), item, style, explode):
            yield part.replace("%20", "+")


def _has_objects(value: object) -> bool:
    return is_list(value) and any(map(is_object, value))


def _encode_multipart(body: Body, value: JsonObject) -> tuple[str, bytes]:
    """Return a form with one part for each value, and one for each item of a list."""
    parts: list[bytes] = []
    for name, given in value.items():
        encoding: Any = body.encodings.get(name)
        declared: Any = encoding.get("contentType") if is_object(encoding) else None
        kind = declared.partition(",")[0].strip() if isinstance(declared, str) else ""
        is_joined = is_object(encoding) and encoding.get("explode") is False
        is_repeated = is_list(given) and not is_joined and not is_json_type(kind)
        for item in given if is_repeated else [given]:
            parts.append(_multipart_part(str(name), item, kind))
    boundary = _make_boundary(parts)
    joined = b"".join([b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts])
    content_type = f"{body.media_type.partition(';')[0]}; boundary={boundary.decode()}"
    return content_type, joined + b"--" + boundary + b"--\r\n"


def _multipart_part(name: str, value: Any, kind: str) -> bytes:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if hasattr(value, "read_bytes"):
        content = _file_content(value)
        file_name = os.path.basename(str(getattr(value, "source", "")).replace("\\", "/"))
        file_name = "upload" if file_name in ("", "-", "content") else file_name
        suffix = os.path.splitext(file_name)[1].lower()
        head += f'; filename="{_quoted(file_name)}"'
        kind = kind if kind and "*" not in kind else _MIME_TYPES.get(suffix, _OCTETS)
    elif is_object(value) or is_list(value):
        is_joined = is_list(value) and not is_json_type(kind)
        text = ",".join(map(to_text, value)) if is_joined else json.dumps(value)
        content, kind = text.encode(), kind or ("text/plain" if is_joined else "application/json")
    else:
        content = to_text(value).encode("utf-8", "replace")
    clean = "".join([char for char in kind if " " <= char <= "~"])
    head += f"\r\nContent-Type: {clean}" if clean else ""
    return head.encode() + b"\r\n\r\n" + content


_OCTETS = "application/octet-stream"


def _quoted(name: str) -> str:
    """Return a name for `Content-Disposition`, as browsers encode it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _make_boundary(parts: Sequence[bytes]) -> bytes:
    while True:
        boundary = b"tooli-" + os.urandom(12).hex().encode()
        if not any([boundary in part for part in parts]):
            return boundary


def _file_content(value: Any) -> bytes:
    """Return the content of an input; bytes and text stand for themselves."""
    if hasattr(value, "read_bytes"):
        return value.read_bytes()
    return value if isinstance(value, bytes) else to_text(value).encode("utf-8", "replace")
