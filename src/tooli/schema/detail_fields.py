"""Detail fields: fields of a result that `--response-format concise` leaves out.

An author marks them in the type of the result. The output schema contains the mark:

    class File(TypedDict):
        path: str
        checksum: Annotated[str, Detail]

    class User(BaseModel):
        name: str
        raw: dict = Field(json_schema_extra={"detail": True})

Detail fields are not required in the schema, so that concise results are valid as well.
"""

from __future__ import annotations

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

    from tooli.core.protocols import JsonObject, JsonValue

_DATA_KEYWORDS = frozenset(("default", "const", "enum", "examples"))
"""Keywords of JSON Schema whose value is data, not a schema."""


class _DetailMarker:
    """The type of `Detail`. pydantic calls it to build the schema of a field."""

    __slots__ = ()

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonObject:
        return {**handler(core), "detail": True}

    def __repr__(self) -> str:
        return "Detail"


Detail = _DetailMarker()
"""`Annotated[str, Detail]`: a field that `--response-format concise` leaves out."""


def is_detail(schema: object) -> bool:
    """True if the schema of a field marks it as a detail."""
    if not is_object(schema):
        return False
    members = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    is_marked = bool(members) and all([is_detail(part) for part in members])
    return is_marked or schema.get("detail") is True


def has_details(schema: object) -> bool:
    """True if a schema has detail fields at any depth."""
    return any(
        is_detail(part) for node in _iter_schemas(schema) for part in _properties(node).values()
    )


def make_details_optional(schema: JsonObject) -> JsonObject:
    """Remove detail fields from `required`, in place, and return the schema."""
    for node in _iter_schemas(schema):
        if "required" not in node:
            continue
        parts = _properties(node)
        remaining = [name for name in _required(node) if not is_detail(parts.get(name))]
        if remaining:
            node["required"] = remaining
        elif _required(node):
            del node["required"]
    return schema


def _iter_schemas(node: object) -> Iterator[JsonObject]:
    """Iterate over a schema and every schema inside it."""
    if is_list(node):
        for item in node:
            yield from _iter_schemas(item)
    elif is_object(node):
        yield node
        for keyword, value in node.items():
            if keyword in ("properties", "patternProperties", "$defs") and is_object(value):
                for part in value.values():
                    yield from _iter_schemas(part)
            elif keyword not in _DATA_KEYWORDS:
                yield from _iter_schemas(value)


def _properties(node: JsonObject) -> JsonObject:
    found = node.get("properties")
    return found if is_object(found) else {}


def _required(node: JsonObject) -> Sequence[str]:
    found = node.get("required")
    return found if is_list(found) else ()  # an author's own schema may be invalid


# ------------------------------------------------------------------ values


def drop_details(value: JsonValue, schema: object, root: JsonObject) -> JsonValue:
    """Return a JSON value without its detail fields.

    `root` is the schema that references are resolved in. If a value matches several members of a
    union, a field is dropped only if all of them mark it as a detail.
    """
    if not isinstance(value, (dict, list)):
        return value
    from tooli.schema.pydantic_messages import iter_variants  # only pydantic's schemas have details

    variants = list(iter_variants(schema, root))
    if len(variants) > 1:
        variants = [node for node in variants if _may_match(value, node)]
    if not variants:
        return value
    if isinstance(value, list):
        return [_drop_in_item(item, i, variants, root) for i, item in enumerate(value)]
    kept: JsonObject = {}
    for name, item in value.items():
        parts = [_field_schema(node, name) for node in variants]
        if not all([is_detail(part) for part in parts]):
            kept[name] = _drop_by_schemas(
                item, [part for part in parts if not is_detail(part)], root
            )
    return kept


def _drop_by_schemas(value: JsonValue, schemas: list[object], root: JsonObject) -> JsonValue:
    """Return a value without the detail fields of one or several schemas."""
    return drop_details(value, schemas[0] if len(schemas) == 1 else {"anyOf": schemas}, root)


def _drop_in_item(
    item: JsonValue, i: int, variants: list[JsonObject], root: JsonObject
) -> JsonValue:
    schemas: list[object] = []
    for node in variants:
        row = node.get("prefixItems", ())
        schemas.append(row[i] if i < len(row) else node.get("items", {}))
    return _drop_by_schemas(item, schemas, root)


def _field_schema(node: JsonObject, name: str) -> object:
    """Return the schema of a field; `additionalProperties` if the field is not declared."""
    found = _properties(node).get(name)
    return node.get("additionalProperties", {}) if found is None else found


def _may_match(value: JsonValue, node: JsonObject) -> bool:
    """True if a value may match a member of a union, by its type, keys and constants."""
    if not is_object(value):
        return node.get("type", "array") == "array"
    if node.get("type", "object") != "object":
        return False
    parts = _properties(node)
    if any([name not in value for name in _required(node)]):
        return False
    if parts and "additionalProperties" not in node and not value.keys() <= parts.keys():
        return False
    return all([_allows_value(part, value[name]) for name, part in parts.items() if name in value])


def _allows_value(part: object, item: JsonValue) -> bool:
    """True if a field with `const` or `enum` allows the value."""
    if not is_object(part):
        return True
    return item == part.get("const", item) and ("enum" not in part or item in part["enum"])
