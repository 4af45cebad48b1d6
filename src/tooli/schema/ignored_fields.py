"""Find the fields of an input that its type does not have, and that pydantic ignores.

Only the core schema of pydantic tells which names a type accepts: names, aliases, the first steps
of alias paths, or any name (`extra="allow"`, dicts). A type with a validator that runs before the
fields are read may accept other names, so nothing is reported for it.
"""

from __future__ import annotations

from itertools import islice

from tooli.core import Record
from tooli.core.tool import MAX_PROBLEMS
from tooli.similar_names import closest_match
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from pydantic import TypeAdapter

    from tooli.core.protocols import JsonObject

    Location: TypeAlias = tuple[str | int, ...]
    Found: TypeAlias = list["IgnoredField"]
    Check: TypeAlias = Callable[[Any, Location, Found], None]
    """Adds the ignored fields of a value to a list."""


class IgnoredField(Record):
    """A field that pydantic ignores: where it is, and which fields its object has.

    `aliases` are the keys of fields that are known only by their aliases.
    """

    location: Location
    known: tuple[str, ...]
    aliases: Mapping[str, str] = {}

    @property
    def closest(self) -> str | None:
        """The known field that is probably meant."""
        name = str(self.location[-1])
        return self.aliases.get(name) or closest_match(name, self.known)


class IgnoredFieldFinder:
    """Finds ignored fields in values of one type."""

    def __init__(self, type_adapter: TypeAdapter[Any]) -> None:
        self._type_adapter = type_adapter
        self._check: Check | None = None

    def find(self, value: object) -> list[IgnoredField]:
        """Return the ignored fields of a value, at most a few more than `MAX_PROBLEMS`."""
        if value.__class__ not in (dict, list, tuple):
            return []
        if self._check is None:
            self._check = _SchemaReader().read(self._type_adapter.core_schema, {}) or _skip
        found: Found = []
        try:
            self._check(value, (), found)
        except RecursionError:  # the validation reports it
            return []
        return found


def _skip(value: object, location: Location, found: Found) -> None:
    """Check nothing."""


_WRAPPERS = {
    "default": "schema",
    "nullable": "schema",
    "function-after": "schema",
    "lax-or-strict": "lax_schema",
    "json-or-python": "python_schema",
}
"""The key of the inner schema in schemas that accept what their inner schema accepts."""

_LISTS = frozenset(("list", "set", "frozenset"))
_WITHOUT_FIELDS = frozenset(
    (
        *("none", "bool", "int", "float", "decimal", "str", "bytes", "date", "time", "datetime"),
        *("timedelta", "literal", "enum", "uuid", "url", "multi-host-url", "complex"),
        *("missing-sentinel", "is-instance", "is-subclass", "callable"),
    )
)
"""Types that accept no JSON object."""


class _SchemaReader:
    """Turns a core schema into checks. A check is None if the schema has no fields to check.

    `_skip` is the check of a schema that accepts objects with any fields.
    """

    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}
        self._checks: dict[str, Check | None] = {}

    def read(self, schema: Any, config: JsonObject) -> Check | None:
        """Return the check of a schema. `config` is the configuration of its model."""
        kind = schema["type"]
        if kind in _WITHOUT_FIELDS:
            return None
        if kind in _WRAPPERS:
            return self.read(schema[_WRAPPERS[kind]], config)
        if kind in _LISTS:
            return _check_items(self.read(schema.get("items_schema") or _ANY, {}))
        reader = _READERS.get(kind)
        return _skip if reader is None else reader(self, schema, config)

    def read_definitions(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a schema with definitions, which parts of it refer to."""
        self._definitions |= {part["ref"]: part for part in schema["definitions"]}
        return self.read(schema["schema"], config)

    def read_reference(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a reference to a definition. A type may contain itself."""
        reference = schema["schema_ref"]
        if reference not in self._definitions:
            return _skip
        if reference not in self._checks:
            checks = self._checks

            def check_recursive(value: Any, location: Location, found: Found) -> None:
                (checks[reference] or _skip)(value, location, found)

            checks[reference] = check_recursive
            checks[reference] = self.read(self._definitions[reference], config)
        return self._checks[reference]

    def read_tuple(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a tuple, whose last items may be of any number."""
        checks = [self.read(part, {}) for part in schema["items_schema"]]
        variadic = schema.get("variadic_item_index")
        if variadic is not None:
            return _check_items(checks[0]) if len(checks) == 1 else _skip
        if all([check is None for check in checks]):
            return None

        def check_parts(value: Any, location: Location, found: Found) -> None:
            for i, (check, item) in enumerate(zip(checks, _items_of(value), strict=False)):
                (check or _skip)(item, (*location, i), found)

        return check_parts

    def read_dict(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a dict. It accepts every key."""
        check = self.read(schema.get("values_schema") or _ANY, {}) or _skip
        if check is _skip:
            return _skip

        def check_values(value: Any, location: Location, found: Found) -> None:
            for key, item in value.items() if is_object(value) else ():
                check(item, (*location, key), found)

        return check_values

    def read_chain(self, schema: Any, config: JsonObject) -> Check | None:
        """Read steps that a value passes one after the other."""
        return self.read(schema["steps"][0], config)

    def read_union(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a union. A field is ignored if the member that knows most fields ignores it."""
        checks: list[Check | None] = []
        for choice in schema["choices"]:
            has_label = choice.__class__ is tuple
            checks.append(self.read(choice[0] if has_label else choice, config))
        return _check_members(checks)

    def read_tagged_union(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a union whose members are distinguished by a field."""
        checks = {tag: self.read(part, config) for tag, part in schema["choices"].items()}
        discriminator = schema["discriminator"]
        check_all = _check_members(list(checks.values()))
        if not isinstance(discriminator, str) or check_all is None:
            return check_all

        def check_tagged(value: Any, location: Location, found: Found) -> None:
            tag = value.get(discriminator) if is_object(value) else None
            check = checks.get(tag, check_all) if isinstance(tag, (str, int)) else check_all
            (check or _skip)(value, location, found)

        return check_tagged

    def read_model(self, schema: Any, config: JsonObject) -> Check | None:
        """Read a pydantic model or a dataclass."""
        if schema.get("custom_init"):
            return _skip
        return self.read(schema["schema"], schema.get("config") or {})

    def read_fields(self, schema: Any, config: JsonObject) -> Check | None:
        """Read the fields of a model, a dataclass or a TypedDict."""
        config = {**config, **(schema.get("config") or {})}
        extra = schema.get("extra_behavior") or config.get("extra_fields_behavior") or "ignore"
        accepted: set[str] = set()
        shown: list[str] = []
        aliases: dict[str, str] = {}
        checks: dict[str, Check] = {}
        parts: dict[str, list[list[Any]]] = {}
        for name, field in _iter_fields(schema["fields"]):
            check = self.read(field["schema"], {}) if "schema" in field else None
            for key, *rest in _iter_keys(name, field, config):
                accepted.add(key)
                if rest:
                    parts.setdefault(key, []).append(rest)
                    continue
                shown.append(key)
                aliases.setdefault(name, key)
                if check is not None and check is not _skip:
                    checks[key] = check
        whole = frozenset(shown)
        checks |= {key: _check_parts(rests) for key, rests in parts.items() if key not in whole}
        if extra != "ignore":
            return _check_fields(checks) if checks else _skip

        def report(value: JsonObject, location: Location, found: Found) -> None:
            if not accepted.issuperset(value):
                unknown = (key for key in value if key not in accepted)
                for key in islice(unknown, MAX_PROBLEMS + 1):
                    found.append(IgnoredField((*location, key), tuple(shown), aliases))

        return _check_fields(checks, report)


_ANY = {"type": "any"}
_READERS: dict[str, Any] = {
    "definitions": _SchemaReader.read_definitions,
    "definition-ref": _SchemaReader.read_reference,
    "tuple": _SchemaReader.read_tuple,
    "dict": _SchemaReader.read_dict,
    "chain": _SchemaReader.read_chain,
    "union": _SchemaReader.read_union,
    "tagged-union": _SchemaReader.read_tagged_union,
    "model": _SchemaReader.read_model,
    "dataclass": _SchemaReader.read_model,
    "model-fields": _SchemaReader.read_fields,
    "dataclass-args": _SchemaReader.read_fields,
    "typed-dict": _SchemaReader.read_fields,
}


def _iter_fields(fields: Any) -> Iterator[tuple[str, JsonObject]]:
    """Iterate over the fields of an object that a caller can set."""
    if is_object(fields):
        yield from fields.items()
        return
    for field in fields:  # of a dataclass
        if field.get("init") is not False:
            yield field["name"], field


def _iter_keys(
    name: str, field: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[Sequence[Any]]:
    """Iterate over the keys that set a field, each as the path of an alias."""
    alias: Any = field.get("validation_alias")
    if alias is None or config.get("validate_by_alias") is False:
        yield (name,)
        return
    paths: list[Any] = [[alias]] if isinstance(alias, str) else alias
    if paths and not isinstance(paths[0], list):
        paths = [paths]
    yield from paths
    if config.get("populate_by_name") or config.get("validate_by_name"):
        yield (name,)


def _check_parts(paths: Sequence[Sequence[Any]]) -> Check:
    """Return the check of an object that only paths of aliases read, such as `AliasPath("a", "b")`.

    Lists and objects whose items are read by position are not checked.
    """
    inner: dict[str, list[Sequence[Any]]] = {}
    whole: set[str] = set()
    for key, *rest in paths:
        if not isinstance(key, str):
            return _skip
        inner.setdefault(key, []).append(rest)
        if not rest:
            whole.add(key)
    checks = {key: _check_parts(rests) for key, rests in inner.items() if key not in whole}
    shown = tuple(inner)

    def report(value: JsonObject, location: Location, found: Found) -> None:
        for key in islice((key for key in value if key not in inner), MAX_PROBLEMS + 1):
            found.append(IgnoredField((*location, key), shown))

    return _check_fields(checks, report)


def _items_of(value: Any) -> Any:
    return value if value.__class__ in (list, tuple) else ()


def _check_items(check: Check | None) -> Check | None:
    if check is None or check is _skip:
        return check

    def check_items(value: Any, location: Location, found: Found) -> None:
        for i, item in enumerate(_items_of(value)):
            check(item, (*location, i), found)

    return check_items


def _check_members(checks: list[Check | None]) -> Check | None:
    """Return the check of a union. It reports the fields that every member ignores."""
    members = [check for check in checks if check is not None]
    if len(members) < 2 or any([check is _skip for check in members]):
        return _skip if any([check is _skip for check in members]) else next(iter(members), None)

    def check_members(value: Any, location: Location, found: Found) -> None:
        results: list[Found] = []
        for check in members:
            results.append([])
            check(value, location, results[-1])
        fewest = min(results, key=len)
        for field in fewest:
            found.append(_merge_members(field, results))

    return check_members


def _merge_members(field: IgnoredField, results: list[Found]) -> IgnoredField:
    """Return an ignored field with the fields that all members of a union have at its location."""
    same = [one for result in results for one in result if one.location == field.location]
    known = tuple(dict.fromkeys([name for one in same for name in one.known]))
    aliases = {name: key for one in reversed(same) for name, key in one.aliases.items()}
    return IgnoredField(field.location, known, aliases)


def _check_fields(checks: Mapping[str, Check], report: Check = _skip) -> Check:
    """Return the check of an object, which calls the checks of its fields."""

    def check_fields(value: Any, location: Location, found: Found) -> None:
        if is_object(value) and len(found) <= MAX_PROBLEMS:
            report(value, location, found)
            for key, check in checks.items():
                if key in value:
                    check(value[key], (*location, key), found)

    return check_fields
