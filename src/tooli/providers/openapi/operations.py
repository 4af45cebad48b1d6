"""Resolve one operation: its parameters, its body, its answer, in one form for all versions.

Entry ─▶ read_operation ─▶ Operation ─▶ input schema, and where each argument goes
"""

from __future__ import annotations

import re

from tooli.core import Record
from tooli.providers.openapi.json_schemas import SchemaConverter
from tooli.providers.openapi.parameter_styles import COLLECTION_FORMATS
from tooli.text.jsonable import is_list, is_object
from tooli.text.unique_names import UniqueNames

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import JsonObject
    from tooli.providers.openapi.document import Document
    from tooli.providers.openapi.operation_index import Entry

_SAFE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
"""Names of arguments that all model providers accept."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
"""The names that RFC 9110 allows."""
_RESERVED_HEADERS = frozenset(
    (
        *("accept", "authorization", "content-type", "content-length", "host", "cookie"),
        *("connection", "transfer-encoding", "proxy-authorization", "upgrade"),
        *("accept-encoding", "trailer", "expect", "keep-alive"),
    )
)
"""Headers that callers cannot set. OpenAPI says so of the first two and of Content-Type."""
_LOCATIONS = ("path", "query", "header", "cookie")
_STYLES = {
    "path": frozenset(("simple", "label", "matrix")),
    "query": frozenset(("form", "spaceDelimited", "pipeDelimited", "deepObject")),
    "header": frozenset(("simple",)),
    "cookie": frozenset(("form",)),
}
_SWAGGER_KEYWORDS = frozenset(
    (
        *("type", "format", "items", "enum", "default", "minimum", "maximum", "pattern"),
        *("exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems"),
        *("maxItems", "uniqueItems", "multipleOf", "x-nullable", "description"),
    )
)
_UPLOAD_DESCRIPTION = "A file: a path, or an http(s) URL."


OUTLINE_INPUT_DEPTH, OUTLINE_OUTPUT_DEPTH = 2, 1
"""The depth of the schemas of an outline: fields of a body, and their items; lists of an answer."""


class ApiParameter(Record):
    """One parameter of a request."""

    name: str  # the argument
    wire_name: str  # the name in the request
    location: str  # "path", "query", "header", "cookie"
    style: str
    explode: bool
    allow_reserved: bool
    is_json: bool  # written as JSON: it has a `content`
    is_required: bool
    schema: JsonObject


class Body(Record):
    """The body of a request."""

    kind: str  # "json", "form", "multipart", "text", "binary"
    media_type: str
    is_required: bool
    fields: Mapping[str, str] | None  # names in the body by argument; None: one argument
    argument: str  # the one argument
    encodings: Mapping[str, JsonObject]
    schema: JsonObject
    uploads: frozenset[str] = frozenset()  # the arguments that are files


class Operation(Record):
    """One operation, resolved."""

    entry: Entry
    parameters: tuple[ApiParameter, ...]
    body: Body | None
    input_schema: JsonObject
    output_schema: JsonObject | None
    response_types: tuple[str, ...]  # the media types of its answer
    security: Sequence[Mapping[str, Any]] | None  # the alternatives; None: not declared
    servers: Sequence[JsonObject] | None  # its own servers, or those of its path
    is_tooli: bool  # the answer is an envelope of tooli

    @property
    def returns_file(self) -> bool:
        """True if the answer is documented as something else than JSON or text."""
        return bool(self.response_types) and not any(map(is_readable, self.response_types))


def read_operation(
    document: Document,
    version: str,
    entry: Entry,
    credentials: frozenset[tuple[str, str]] = frozenset(),
    *,
    is_outline: bool = False,
) -> Operation:
    """Return an operation, resolved. Raises DefinitionError if it is invalid.

    `credentials` are the names and locations of the parameters that are credentials. The schemas of
    an outline are only as deep as the signature of the operation needs.
    """
    return _OperationReader(document, version, entry, credentials, is_outline).read()


def is_json_type(media_type: str) -> bool:
    """True for the media types of JSON."""
    base = media_type.partition(";")[0].strip().lower()
    return base in ("application/json", "text/json") or base.endswith("+json")


def is_readable(media_type: str) -> bool:
    """True for media types whose content is text."""
    base = media_type.partition(";")[0].strip().lower()
    is_text = base.startswith("text/") or base.endswith(("+xml", "/xml", "+yaml", "/yaml"))
    known = ("application/x-ndjson", "application/jsonl", "application/javascript", "*/*")
    return is_json_type(base) or is_text or base in known


class _OperationReader:
    """Reads one operation."""

    def __init__(
        self,
        document: Document,
        version: str,
        entry: Entry,
        credentials: frozenset[tuple[str, str]],
        is_outline: bool,
    ) -> None:
        self._document = document
        self._entry = entry
        self._credentials = credentials
        self._is_swagger = version == "2.0"
        self._is_outline = is_outline
        self._inputs = SchemaConverter(
            document, max_depth=OUTLINE_INPUT_DEPTH if is_outline else None
        )
        self._item: JsonObject = document.resolve(document.item("/paths", entry.path))
        self._operation: JsonObject = self._item[entry.method]
        self._taken = UniqueNames()
        self._properties: JsonObject = {}
        self._required: list[str] = []

    def read(self) -> Operation:
        """Return the operation."""
        declared = list(self._declared_parameters())
        names = {p["name"] for p in declared if p.get("in") == "path"}
        placeholders = dict.fromkeys(re.findall(r"\{([^{}]*)\}", self._entry.path))
        implied = [_path_parameter(name) for name in placeholders if name not in names]
        found = map(self._read_parameter, [*implied, *declared])
        parameters = [parameter for parameter in found if parameter is not None]
        body = self._read_body(declared)
        types, answer = self._read_answer()
        security: Any = self._operation.get("security", self._document.get("security"))
        servers: Any = self._operation.get("servers") or self._item.get("servers")
        is_tooli = isinstance(self._operation.get("x-tooli-command"), str)
        depth = OUTLINE_OUTPUT_DEPTH if self._is_outline else None
        outputs = SchemaConverter(self._document, for_output=True, max_depth=depth)
        output = None if answer is None else outputs.convert(answer)
        schema: JsonObject = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        return Operation(
            entry=self._entry,
            parameters=tuple(parameters),
            body=body,
            input_schema=schema,
            output_schema=output if output else None,
            response_types=types,
            security=security if is_list(security) else None,
            servers=servers if is_list(servers) and servers else None,
            is_tooli=is_tooli,
        )

    # -------------------------------------------------------------- parameters

    def _declared_parameters(self) -> Iterator[JsonObject]:
        """Yield the parameters. One of the operation replaces that of its path."""
        found: dict[tuple[object, object], JsonObject] = {}
        for owner in (self._item, self._operation):
            listed: Any = owner.get("parameters")
            for item in listed if is_list(listed) else ():
                parameter = self._document.resolve(item)
                if is_object(parameter) and isinstance(parameter.get("name"), str):
                    found[parameter["name"], parameter.get("in")] = parameter
        yield from found.values()

    def _read_parameter(self, declared: JsonObject) -> ApiParameter | None:
        location, wire_name = declared.get("in"), declared["name"]
        if location not in _LOCATIONS or self._is_hidden(wire_name, location):
            return None
        content: Any = declared.get("content")
        media = next(iter(content), "") if is_object(content) else ""
        if self._is_swagger:
            source: Any = {k: v for k, v in declared.items() if k in _SWAGGER_KEYWORDS}
            style, explode = self._collection_style(declared, location)
        else:
            source = content[media].get("schema") if media else declared.get("schema")
            style, explode = self._style(declared, location)
        schema = self._inputs.convert(source or {})
        description = declared.get("description")
        if isinstance(description, str) and description:
            schema = {**schema, "description": description}
        if declared.get("deprecated") is True:
            schema = {**schema, "deprecated": True}
        is_required = location == "path" or declared.get("required") is True
        name = self._add(wire_name, location, schema, is_required=is_required)
        return ApiParameter(
            name=name,
            wire_name=wire_name,
            location=location,
            style=style,
            explode=explode,
            allow_reserved=declared.get("allowReserved") is True,
            is_json=bool(media) and is_json_type(media),
            is_required=is_required,
            schema=schema,
        )

    def _is_hidden(self, name: str, location: object) -> bool:
        """True for headers that callers cannot set, and for the parameters of credentials."""
        if location == "header" and not _HEADER_NAME.match(name):
            return True  # `authorization ` is another header for servers that remove spaces
        is_reserved = location == "header" and name.lower() in _RESERVED_HEADERS
        return is_reserved or (name, location) in self._credentials

    def _style(self, declared: JsonObject, location: str) -> tuple[str, bool]:
        default = "form" if location in ("query", "cookie") else "simple"
        style: Any = declared.get("style")
        style = style if style in _STYLES[location] else default
        explode = declared.get("explode")
        return style, explode if isinstance(explode, bool) else style in ("form", "deepObject")

    def _collection_style(self, declared: JsonObject, location: str) -> tuple[str, bool]:
        style, explode = COLLECTION_FORMATS.get(
            str(declared.get("collectionFormat")), ("form", False)
        )
        if location in ("path", "header"):
            return "simple", False
        return style, explode

    def _add(self, wire_name: str, location: str, schema: JsonObject, *, is_required: bool) -> str:
        """Add an argument, and return its name: that in the request, if it is allowed and free."""
        name = wire_name
        if not _SAFE_NAME.match(name):
            words = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.-")
            name = words[:60] or location
            if "description" not in schema:
                schema["description"] = f"The {location} parameter `{wire_name[:200]}`."
        base = f"{name[:50]}_{location}" if name in self._taken else name
        name = self._taken.add(base, f"{base}_{{}}".format)
        self._properties[name] = schema
        if is_required:
            self._required.append(name)
        return name

    # -------------------------------------------------------------- the body

    def _read_body(self, declared: Sequence[JsonObject]) -> Body | None:
        if self._is_swagger:
            found = self._swagger_body(declared)
        else:
            found = self._document.resolve(self._operation.get("requestBody"))
        content: Any = found.get("content") if is_object(found) else None
        if not is_object(content) or not content or not is_object(found):
            return None
        media_type = min(content, key=_rank)
        media: Any = content[media_type]
        media = media if is_object(media) else {}
        source: Any = media.get("schema")
        kind = _kind_of(media_type)
        schema = self._inputs.convert(source if source is not None else {})
        encodings: Any = media.get("encoding")
        body = Body(
            kind=kind,
            media_type="application/json" if media_type == "*/*" else media_type,
            is_required=found.get("required") is True,
            fields=None,
            argument="",
            encodings=encodings if is_object(encodings) else {},
            schema=schema,
        )
        is_optional = found.get("required") is False and bool(schema.get("required"))
        uploads = _upload_properties(self._document.resolve(source), self._document)
        description = found.get("description")
        if kind in ("json", "form", "multipart") and _is_flat(schema) and not is_optional:
            return self._add_fields(body, uploads if kind == "multipart" else {})
        if isinstance(description, str) and description and "description" not in schema:
            schema["description"] = description
        if kind == "binary":
            schema = {"type": "string", "description": _UPLOAD_DESCRIPTION}
        elif kind == "text":
            schema.setdefault("type", "string")
        name = self._add("body", "body", schema, is_required=body.is_required)
        files = frozenset((name,)) if kind == "binary" else frozenset[str]()
        return body.replace(argument=name, schema=schema, uploads=files)

    def _add_fields(self, body: Body, uploads: Mapping[str, bool]) -> Body:
        """Make each property of the body an argument of its own."""
        fields: dict[str, str] = {}
        files: set[str] = set()
        required = body.schema.get("required", ())
        for wire_name, schema in body.schema["properties"].items():
            if wire_name in uploads:
                item = {"type": "string", "description": _UPLOAD_DESCRIPTION}
                about = schema.get("description")
                item = {**item, "description": f"{about} {_UPLOAD_DESCRIPTION}"} if about else item
                schema = {"type": "array", "items": item} if uploads[wire_name] else item
            is_required = wire_name in required
            name = self._add(str(wire_name), "body", schema, is_required=is_required)
            fields[name] = str(wire_name)
            if wire_name in uploads:
                files.add(name)
        return body.replace(fields=fields, uploads=frozenset(files))

    def _swagger_body(self, declared: Sequence[JsonObject]) -> JsonObject | None:
        """Return the body of a Swagger 2 operation as OpenAPI 3 describes it."""
        consumed: Any = self._operation.get("consumes", self._document.get("consumes"))
        types = [t for t in consumed if isinstance(t, str)] if is_list(consumed) else []
        for parameter in declared:
            if parameter.get("in") == "body":
                content = {t: {"schema": parameter.get("schema")} for t in types}
                return {**parameter, "content": content or _json(parameter.get("schema"))}
        fields = [parameter for parameter in declared if parameter.get("in") == "formData"]
        if not fields:
            return None
        has_file = any([field.get("type") == "file" for field in fields])
        properties: JsonObject = {}
        encodings: JsonObject = {}
        for field in fields:
            schema = {k: v for k, v in field.items() if k in _SWAGGER_KEYWORDS}
            properties[field["name"]] = (
                {**schema, "type": "string", "format": "binary"} if has_file_type(field) else schema
            )
            style, explode = self._collection_style(field, "formData")
            encodings[field["name"]] = {"style": style, "explode": explode}
        schema = {
            "type": "object",
            "properties": properties,
            "required": [field["name"] for field in fields if field.get("required") is True],
        }
        is_multipart = has_file or "multipart/form-data" in types
        is_form = not has_file and "application/x-www-form-urlencoded" in types
        media = "multipart/form-data" if is_multipart and not is_form else _FORM
        return {"content": {media: {"schema": schema, "encoding": encodings}}}

    # -------------------------------------------------------------- the answer

    def _read_answer(self) -> tuple[tuple[str, ...], object]:
        """Return the media types of the answer to a success, and the schema of its JSON."""
        responses: Any = self._operation.get("responses")
        if not is_object(responses):
            return (), None
        successes = sorted([code for code in map(str, responses) if code[:1] == "2"])
        code = next(iter(successes), "default" if "default" in responses else None)
        if code is None:
            return (), None
        found = self._document.resolve(responses.get(code, responses.get(_as_number(code))))
        if not is_object(found):
            return (), None
        if self._is_swagger:
            produced: Any = self._operation.get("produces", self._document.get("produces"))
            types = [t for t in produced if isinstance(t, str)] if is_list(produced) else []
            schema = found.get("schema")
            if is_object(schema) and schema.get("type") == "file" and not types:
                types = ["application/octet-stream"]
            has_json = not types or any(map(is_json_type, types))
            return tuple(types) if schema is not None else (), schema if has_json else None
        content: Any = found.get("content")
        if not is_object(content):
            return (), None
        types = tuple([str(media_type) for media_type in content])
        json_type = next((t for t in types if is_json_type(t) or t == "*/*"), None)
        media: Any = content.get(json_type)
        return types, media.get("schema") if is_object(media) else None


def _path_parameter(name: str) -> JsonObject:
    """Return the parameter of a path that the document does not declare."""
    kind = {"type": "string"}
    return {"name": name, "in": "path", "required": True, **kind, "schema": kind}


_FORM = "application/x-www-form-urlencoded"
_RANKS = ("application/json", "json", "multipart/form-data", "urlencoded", "*/*", "text/", "xml")


def _rank(media_type: str) -> int:
    """Return the rank of a media type of a request body. The lowest one is used."""
    base = str(media_type).lower()
    return next((i for i, word in enumerate(_RANKS) if word in base), len(_RANKS))


def _kind_of(media_type: str) -> str:
    base = media_type.partition(";")[0].strip().lower()
    if is_json_type(base) or base == "*/*":
        return "json"
    if base == _FORM:
        return "form"
    if base.startswith("multipart/"):
        return "multipart"
    return "text" if is_readable(base) else "binary"


def _json(schema: object) -> JsonObject:
    return {"application/json": {"schema": schema}}


def _as_number(code: str) -> object:
    return int(code) if code.isdecimal() else code


def has_file_type(field: Mapping[str, object]) -> bool:
    """True for a form field of Swagger 2 that is a file."""
    return field.get("type") == "file"


def _is_flat(schema: JsonObject) -> bool:
    """True if the properties of a body can be arguments of their own."""
    is_closed = schema.get("additionalProperties", False) is False
    kinds = schema.keys() - {"description", "default", "deprecated"}
    known = {"type", "properties", "required", "additionalProperties"}
    is_object_only = schema.get("type", "object") == "object"
    properties: JsonObject = schema.get("properties", {})
    has_all = set(schema.get("required", ())) <= properties.keys()
    is_plain = is_closed and kinds <= known and is_object_only
    return bool(properties) and has_all and is_plain


def _upload_properties(schema: object, document: Document) -> dict[str, bool]:
    """Return the properties of a form that are files, and whether each is a list of files."""
    found: dict[str, bool] = {}
    for name, part in _all_properties(schema, document):
        resolved = document.resolve(part)
        if not is_object(resolved):
            continue
        items = document.resolve(resolved.get("items"))
        if _is_binary(resolved):
            found[name] = False
        elif resolved.get("type") == "array" and is_object(items) and _is_binary(items):
            found[name] = True
    return found


def _all_properties(schema: object, document: Document) -> Iterator[tuple[str, object]]:
    """Yield the properties of a schema, and of the parts of its `allOf`, each part once."""
    waiting, seen = [schema], set[str]()
    while waiting:
        part = waiting.pop()
        reference = part.get("$ref") if is_object(part) else None
        if isinstance(reference, str):
            if reference in seen:
                continue
            seen.add(reference)
            part = document.resolve(part)
        if not is_object(part):
            continue
        properties: Any = part.get("properties")
        if is_object(properties):
            yield from [(str(name), inner) for name, inner in properties.items()]
        parts: Any = part.get("allOf")
        waiting += reversed(parts if is_list(parts) else [])


def _is_binary(schema: Mapping[str, object]) -> bool:
    kind = schema.get("type")
    if kind not in ("string", "file", None):
        return False
    media = schema.get("contentMediaType")
    is_encoded = schema.get("contentEncoding") is not None
    return (
        kind == "file"
        or schema.get("format") == "binary"
        or (isinstance(media, str) and not is_encoded and not is_readable(media))
    )
