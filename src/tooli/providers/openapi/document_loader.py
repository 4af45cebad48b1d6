"""Read an OpenAPI document: a file, a URL or a dict, in JSON or YAML.

    file ──▶ JSON ─────────────────────────────────────┬▶ scan_sections ─▶ Document
    URL ───▶ YAML ─▶ JSON, cached by the hash ─────────╯     cached by the hash

A document from a URL is kept for five minutes. After that the server is asked whether it has
changed. If the server cannot be reached, the copy is used.
"""

from __future__ import annotations

import json
import os
from posixpath import normpath
from time import time
from urllib.parse import urljoin, urlsplit

from tooli.core import Record
from tooli.errors import DefinitionError, TemporaryError, ToolError
from tooli.inputs.urls import RequestDeadline, display_url
from tooli.providers.openapi.document import MAX_DOCUMENT_BYTES, Document, scan_sections
from tooli.providers.openapi.document_cache import content_key, read_entry, write_entry
from tooli.providers.openapi.http_client import ApiRequest, send
from tooli.text.jsonable import is_list, is_object
from tooli.text.yaml_reader import YamlError, read_yaml

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.document import Sections

FRESH_SECONDS = 300.0
"""Seconds for which a document from a URL is used without asking the server."""
FETCH_SECONDS = 30.0
"""Limit for the request of a document, in seconds."""
MAX_OTHER_FILES = 200
"""Maximum number of other files that a document may refer to."""
_MAX_INDEX_BYTES = 16 << 20
_ACCEPT = "application/json, application/yaml;q=0.9, */*;q=0.5"


class LoadedSource(Record):
    """The bytes of a document, and where they come from."""

    data: bytes
    name: str  # for messages
    url: str | None = None  # of a document that was fetched
    warning: str = ""  # why a copy was used
    is_private: bool = False  # it was fetched from an address of a private network


def is_url(source: object) -> bool:
    """True for an http or https URL."""
    return isinstance(source, str) and source[:8].lower().startswith(("http://", "https://"))


def load_document(source: str | Mapping[str, object]) -> tuple[Document, LoadedSource]:
    """Return the document at a path or a URL, or in a dict.

    Raises:
        DefinitionError: it cannot be read, or is not an OpenAPI document.
    """
    if not isinstance(source, str):
        loaded = LoadedSource(_dump(dict(source), "the document"), "the document")
        return Document(loaded.data, loaded.name), loaded
    loaded = _fetch(source) if is_url(source) else LoadedSource(_read_file(source), source)
    data = _as_json(loaded.data, loaded.name)
    opener = _OtherFiles(source).open
    return Document(data, loaded.name, _cached_sections(data, loaded.name), opener), loaded


def _as_json(data: bytes, name: str) -> bytes:
    """Return a document as JSON in UTF-8. The JSON of a YAML document is cached."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DefinitionError(f"{name} is larger than the limit of {MAX_DOCUMENT_BYTES:,} bytes")
    encoding = json.detect_encoding(data[:4])
    if not encoding.startswith("utf-8"):
        try:
            data = data.decode(encoding).encode()
        except UnicodeError:
            raise DefinitionError(f"{name} is not text in UTF-8") from None
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"{":
        return data
    if start in (b"", b"<", b"["):
        kind = {b"": "it is empty", b"<": "it is HTML or XML"}.get(start, "it is a list")
        raise DefinitionError(f"{name} is not an OpenAPI document: {kind}")
    key = content_key("json of yaml 1", data)
    found = read_entry(key, MAX_DOCUMENT_BYTES)
    if found is None:
        found = _dump(_parse_yaml(data, name), name)
        write_entry(key, found)
    return found


def _dump(value: object, name: str) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as failure:
        raise DefinitionError(f"{name} has a value that is not JSON: {failure}") from None


def _cached_sections(data: bytes, name: str) -> Sections:
    """Return the sections of a document. Those of a large one are cached."""
    if len(data) < 1 << 20:
        return scan_sections(data, name)
    key = content_key("sections 1", data)
    found = read_entry(key, _MAX_INDEX_BYTES)
    if found is not None:
        return json.loads(found)
    sections = scan_sections(data, name)
    write_entry(key, json.dumps(sections, separators=(",", ":")).encode())
    return sections


# ------------------------------------------------------------------ files


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        raise DefinitionError(f"{path} does not exist") from None
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise DefinitionError(f"{path} cannot be read: {reason}") from None


class _OtherFiles:
    """Opens the files that a document refers to: only those in its folder, or below it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0

    def open(self, reference: str) -> Document:
        """Return the document that a relative reference names."""
        self._count += 1
        if self._count > MAX_OTHER_FILES:
            raise DefinitionError(f"{self._source} refers to more than {MAX_OTHER_FILES} files")
        if is_url(self._source):
            url = self._check_url(reference)
            loaded = _fetch(url)
            return Document(_as_json(loaded.data, loaded.name), loaded.name)
        path = self._check_path(reference)
        return Document(_as_json(_read_file(path), path), path)

    def _check_path(self, reference: str) -> str:
        folder = os.path.realpath(os.path.dirname(os.path.abspath(self._source)))
        path = "" if ":" in reference else os.path.realpath(os.path.join(folder, reference))
        names = path.removeprefix(os.path.join(folder, "")).split(os.sep)
        is_inside = path.startswith(os.path.join(folder, ""))
        is_hidden = any([name.startswith(".") for name in names])  # settings of other programs
        is_no_file = os.path.exists(path) and not os.path.isfile(path)  # a pipe would never end
        if not is_inside or is_hidden or is_no_file:
            raise self._refusal(reference)
        return path

    def _check_url(self, reference: str) -> str:
        base, url = urlsplit(self._source), urlsplit(urljoin(self._source, reference))
        folder = base.path.rpartition("/")[0] + "/"
        is_below = normpath(url.path).startswith(folder) and "%" not in url.path
        if (url.scheme, url.netloc) != (base.scheme, base.netloc) or not is_below:
            raise self._refusal(reference)
        return url.geturl()

    def _refusal(self, reference: str) -> DefinitionError:
        return DefinitionError(
            f"{display_url(self._source)}: the reference to {reference[:200]!r} is not allowed: "
            "only files in the folder of the document are read, and no hidden ones"
        )


# ------------------------------------------------------------------ URLs


def _fetch(url: str) -> LoadedSource:
    """Return the document at a URL, or the copy of it."""
    name, key = display_url(url), content_key("url 1", url.encode())
    notes = _read_notes(key)
    data = read_entry(key + "d", MAX_DOCUMENT_BYTES) if "private" in notes else None
    if data is None:
        notes = {}
    elif 0 <= time() - notes.get("time", 0) < FRESH_SECONDS:
        return _loaded(data, name, url, notes)
    try:
        return _request(url, name, key, notes, data)
    except ToolError as error:
        if data is None:
            raise DefinitionError(f"{name} cannot be read: {error.message}") from None
        warning = f"{name} cannot be read: {error.message} An earlier copy is used."
        return _loaded(data, name, url, notes).replace(warning=warning)


def _request(url: str, name: str, key: str, notes: JsonObject, data: bytes | None) -> LoadedSource:
    headers = {"Accept": _ACCEPT, "User-Agent": "tooli"}
    for header in ("ETag", "Last-Modified"):
        if isinstance(notes.get(header), str):
            headers["If-None-Match" if header == "ETag" else "If-Modified-Since"] = notes[header]
    deadline = RequestDeadline(FETCH_SECONDS)
    try:
        answer = send(ApiRequest("GET", url, headers, allows_private=True), deadline)
        try:
            if answer.status != 304 or data is None:
                if answer.status == 429 or answer.status >= 500:
                    raise TemporaryError(f"It answered {answer.status}.")
                if answer.status != 200:
                    raise DefinitionError(f"{name} cannot be read: it answered {answer.status}")
                data = answer.read(MAX_DOCUMENT_BYTES)
                write_entry(key + "d", data)
                found = {h: answer.headers[h] for h in ("ETag", "Last-Modified")}
                notes = {**found, "url": answer.url, "private": answer.is_private}
            write_entry(key, json.dumps({**notes, "time": time()}).encode())
        finally:
            answer.close()
    finally:
        deadline.cancel()
    return _loaded(data, name, url, notes)


def _loaded(data: bytes, name: str, url: str, notes: JsonObject) -> LoadedSource:
    is_private = notes.get("private") is True
    return LoadedSource(data, name, notes.get("url") or url, is_private=is_private)


def _read_notes(key: str) -> JsonObject:
    """Return what is known about the copy of a document."""
    found = read_entry(key, 1 << 16)
    try:
        notes: object = json.loads(found) if found is not None else {}
    except ValueError:
        return {}
    return notes if is_object(notes) else {}


# ------------------------------------------------------------------ YAML


def _parse_yaml(data: bytes, name: str) -> JsonObject:
    try:
        plain = _as_plain(read_yaml(data, has_dates=False))
    except YamlError as failure:
        place = "" if failure.line is None else f" in line {failure.line}"
        raise DefinitionError(f"{name} is not valid YAML{place}: {failure}") from None
    if not is_object(plain):
        raise DefinitionError(f"{name} is not an OpenAPI document: it must be an object")
    return plain


def _as_plain(node: Any) -> Any:
    """Return a copy of a YAML value as JSON. Words such as `no` in keys are text."""
    if is_list(node):
        return [_as_plain(item) for item in node]
    if is_object(node):
        return {_key(key): _as_plain(value) for key, value in node.items()}
    if node is None or isinstance(node, (str, bool, int, float)):
        return node
    raise YamlError(f"{type(node).__name__} is not a JSON value")


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
