"""Named schemas of an OpenAPI document: each model and enum once, under a readable name.

    annotation ─▶ Components ─▶ schema with references ─┐
    schema with $defs ─▶ add_definitions ───────────────┴─▶ resolve: the names are known

A model is described twice, as an argument and as a result. If both are the same, they have one
name. Otherwise the argument has the suffix `Input`: fields with a default are optional in it, and
it has no computed fields. Whether a model has the suffix depends on the model only, so a further
command does not rename the schemas of the others.
"""

from __future__ import annotations

import re
from json import dumps

from tooli.schema.json_schema import CLASS_KEYWORD, NamedSchemas
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tooli.core.protocols import JsonObject

REFERENCE = "#/components/schemas/"
_UNRESOLVED = "#/tooli/"
"""Beginning of a reference whose name is not known yet. The key of the definition follows."""

_DATA_KEYWORDS = ("enum", "const", "default", "examples")
_NAMED_PARTS = ("properties", "patternProperties", "$defs")


class _Definition:
    """One definition: a model or an enum, as an argument or as a result."""

    def __init__(self, name: str, identity: str, mode: str, body: JsonObject) -> None:
        self.name = name
        self.identity = identity  # of its class: the same for both modes
        self.mode = mode  # "input" or "output"
        self.body = body
        self.is_used = False


class Components(NamedSchemas):
    """Describes types, and collects the definitions that they refer to.

    `restrict` returns the schema of an argument with the restrictions of the server.
    """

    def __init__(self, restrict: Callable[[JsonObject], JsonObject]) -> None:
        self._restrict = restrict
        self._definitions: dict[str, _Definition] = {}
        self._own: JsonObject = {}  # schemas of the document itself, by name
        self._taken: set[str] = set()

    def __call__(self, annotation: object) -> JsonObject:
        """Return the schema of arguments, which refers to definitions."""
        schema = super().__call__(annotation)
        if "$defs" in schema:  # the results of the same types decide about the names
            self._collect(super().describe_result(annotation), "output", is_used=False)
        return self._collect(schema, "input")

    def describe_result(self, annotation: object) -> JsonObject:
        """Return the schema of results, which refers to definitions."""
        return self._collect(super().describe_result(annotation), "output")

    def add_definitions(self, schema: JsonObject, mode: str) -> JsonObject:
        """Return a schema whose definitions were moved to the components."""
        return self._collect(schema, mode)

    def reserve(self, name: str, schema: JsonObject) -> JsonObject:
        """Add a schema of the document itself; return a reference to it."""
        name = self._free_name([name])
        self._own[name] = schema
        return {"$ref": f"{REFERENCE}{name}"}

    # -------------------------------------------------------------- definitions

    def _collect(self, schema: JsonObject, mode: str, *, is_used: bool = True) -> JsonObject:
        definitions: JsonObject = schema.get("$defs", {})
        keys: dict[str, str] = {}
        for name, body in definitions.items():
            identity = body.get(CLASS_KEYWORD) or f"{name} {dumps(body, sort_keys=True)}"
            keys[f"#/$defs/{name}"] = key = f"{mode}:{identity}"
            if key not in self._definitions:
                title = body.get("title") if CLASS_KEYWORD in body else None
                own_name = title if isinstance(title, str) else name
                self._definitions[key] = _Definition(own_name, identity, mode, body)
        for name, body in definitions.items():
            definition = self._definitions[keys[f"#/$defs/{name}"]]
            if definition.body is body:
                definition.body = _simplify(body, keys, mode)
            definition.is_used |= is_used
        rest = {key: part for key, part in schema.items() if key != "$defs"}
        return _simplify(rest, keys, mode)

    def _differs_by_mode(self) -> set[str]:
        """Return the classes whose arguments and results have different schemas."""
        found: set[str] = set()
        comparable: dict[str, list[JsonObject]] = {}
        for definition in self._definitions.values():
            comparable.setdefault(definition.identity, []).append(definition.body)
        for identity, bodies in comparable.items():
            texts = {_without_mode(dumps(body, sort_keys=True)) for body in bodies}
            if len(texts) > 1:
                found.add(identity)
        changed = True
        while changed:  # a class differs if a class inside it does
            inside = [
                definition.identity
                for definition in self._definitions.values()
                if definition.identity not in found
                and any([key.partition(":")[2] in found for key in _references(definition.body)])
            ]
            found.update(inside)
            changed = bool(inside)
        return found

    # -------------------------------------------------------------- names

    def resolve(self, document: JsonObject) -> JsonObject:
        """Return a document with the names of all definitions, and with their schemas."""
        names = self._choose_names()
        keys = {f"{_UNRESOLVED}{key}": f"{REFERENCE}{name}" for key, name in names.items()}
        schemas = dict(self._own)
        used = [key for key, definition in self._definitions.items() if definition.is_used]
        for key in used:
            definition = self._definitions[key]
            body = {k: part for k, part in definition.body.items() if k != CLASS_KEYWORD}
            # if both modes have one name, the schema of the argument is the stricter one
            if definition.mode == "input":
                schemas[names[key]] = self._restrict(body)
            else:
                schemas.setdefault(names[key], body)
        components: JsonObject = {**document.get("components", {}), "schemas": schemas}
        return _rewrite({**document, "components": components}, keys)

    def _choose_names(self) -> dict[str, str]:
        differing = self._differs_by_mode()
        by_base: dict[str, dict[str, None]] = {}
        for definition in self._definitions.values():
            by_base.setdefault(definition.name, {})[definition.identity] = None
        chosen: dict[tuple[str, str], str] = {}
        for base, identities in by_base.items():
            for identity in identities:
                candidates = _candidates(base, identity, is_unique=len(identities) == 1)
                name = self._free_name(candidates, [f"{name}Input" for name in candidates])
                chosen[identity, "output"] = name
                is_split = identity in differing
                chosen[identity, "input"] = f"{name}Input" if is_split else name
        return {
            key: chosen[definition.identity, definition.mode]
            for key, definition in self._definitions.items()
        }

    def _free_name(self, candidates: list[str], companions: Iterable[str] = ()) -> str:
        """Return the first candidate that is free, or the last one with a number; take it.

        Generators change upper and lower case, and separators. So names that differ only in these
        are the same name.
        """
        pairs = list(zip(candidates, [*companions] or candidates, strict=True))
        last, last_companion = pairs[-1]
        number = 1
        while True:
            for name, companion in pairs:
                both = {_plain(name), _plain(companion)}
                if self._taken.isdisjoint(both):
                    self._taken |= both
                    return name
            number += 1
            pairs = [(f"{last}{number}", f"{last_companion}{number}")]


def pascal_case(name: str) -> str:
    """Return a name in `[a-z0-9_]` as the name of a schema: `FindFiles` for `find_files`."""
    return "".join([part[:1].upper() + part[1:] for part in name.split("_")])


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _candidates(base: str, identity: str, *, is_unique: bool) -> list[str]:
    """Return names for a class: its own name if no other class has it, else with its module."""
    clean = re.sub("[^A-Za-z0-9]+", "_", base).strip("_") or "Model"
    path = identity.partition(" ")[0].partition("[")[0].partition(":")[0].split(".")[:-1]
    modules = [re.sub("[^A-Za-z0-9]+", "_", part).strip("_") for part in path]
    modules = [part for part in modules if part and part != "locals"]
    qualified = ["_".join([*modules[-count:], clean]) for count in range(1, len(modules) + 1)]
    return [clean, *qualified] if is_unique else qualified or [clean]


# ------------------------------------------------------------------ schemas


def _without_mode(text: str) -> str:
    return text.replace(f'"{_UNRESOLVED}input:', f'"{_UNRESOLVED}:').replace(
        f'"{_UNRESOLVED}output:', f'"{_UNRESOLVED}:'
    )


def _references(node: object) -> list[str]:
    """Return the keys of the definitions that a schema refers to."""
    if is_list(node):
        return [key for item in node for key in _references(item)]
    if not is_object(node):
        return []
    found = [key for value in node.values() for key in _references(value)]
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith(_UNRESOLVED):
        found.append(reference[len(_UNRESOLVED) :])
    return found


def _simplify(schema: Any, keys: dict[str, str], mode: str) -> Any:
    """Return a schema in the form that generators of clients handle best.

    - References start with `_UNRESOLVED`.
    - It has no titles: generators would name types after them.
    - It has no defaults: generators make fields with a default required. Those of arguments are
      in the description.
    - A constant is an enum with one value, which all generators support.
    - Binary data is a plain string, because JSON has no binary data.
    """
    if is_list(schema):
        return [_simplify(part, keys, mode) for part in schema]
    if not is_object(schema):
        return schema
    simple: JsonObject = {}
    for key, part in schema.items():
        if key in _NAMED_PARTS and is_object(part):
            simple[key] = {name: _simplify(value, keys, mode) for name, value in part.items()}
        elif key == "discriminator" and is_object(part):
            simple[key] = _simplify_discriminator(part, keys)
        elif key == "const":
            simple.update({"type": "null"} if part is None else {"enum": [part]})
        elif key == "$ref" and part in keys:
            simple[key] = f"{_UNRESOLVED}{keys[part]}"
        elif not (
            (key == "title" and isinstance(part, str))
            or key == "default"
            or (key == "format" and part == "binary")
        ):
            simple[key] = part if key in _DATA_KEYWORDS else _simplify(part, keys, mode)
    if mode == "input" and schema.get("default") is not None:
        simple["description"] = _with_default(simple.get("description"), schema["default"])
    return simple


def _simplify_discriminator(part: JsonObject, keys: dict[str, str]) -> JsonObject:
    mapping: dict[str, str] = part.get("mapping", {})
    known = {reference: f"{_UNRESOLVED}{key}" for reference, key in keys.items()}
    found = {value: known.get(reference, reference) for value, reference in mapping.items()}
    resolved = {value: ref for value, ref in found.items() if ref.startswith(_UNRESOLVED)}
    name = {"propertyName": part["propertyName"]}
    return {**name, "mapping": resolved} if resolved else name


_MAX_DEFAULT_CHARS = 80


def _with_default(description: object, default: object) -> str:
    text = dumps(default, ensure_ascii=False)
    shown = f"Default: `{text}`." if len(text) <= _MAX_DEFAULT_CHARS else ""
    return " ".join([part for part in (str(description or ""), shown) if part])


def _rewrite(node: Any, names: dict[str, str]) -> Any:
    """Replace the unresolved references in a document."""
    if is_list(node):
        return [_rewrite(item, names) for item in node]
    if is_object(node):
        return {key: _rewrite(value, names) for key, value in node.items()}
    return names.get(node, node) if isinstance(node, str) else node
