"""Read the JSON Schema of an external tool into parameters.

    input schema ─▶ read_params ─▶ Param, …        flags of the command line, plain conversions
                 └▶ make_check  ─▶ SchemaCheck   everything that only jsonschema can check

A property of a plain type becomes a parameter of that type, as in a signature: no other module is
loaded to convert its values. All other properties take JSON. If every property is plain, there is
nothing else to check, and jsonschema is not imported.

The schema itself is published as it is. A property without a value is not passed to the function:
an absent property is not null.
"""

from __future__ import annotations

from keyword import iskeyword

from tooli.core.tool import (
    MISSING,
    SCALAR_SHAPES,
    Choice,
    ListOf,
    Maybe,
    Param,
    Structured,
    is_bool,
    quote,
    unwrap_optional,
)
from tooli.errors import DefinitionError, DependencyError, Suggestion
from tooli.schema.json_validation import build_validator, find_problems
from tooli.schema.schema_cost import find_reference
from tooli.schema.schema_keywords import find_invalid_keyword
from tooli.text.jsonable import is_list, is_object
from tooli.text.sanitize import sanitize
from tooli.text.unique_names import UniqueNames

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from jsonschema.protocols import Validator

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Shape
    from tooli.schema.json_validation import SchemaProblem

_PLAIN_TYPES: dict[object, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
}
_NOTES = frozenset(
    (
        *("title", "description", "default", "examples", "example", "deprecated"),
        *("readOnly", "writeOnly", "$comment", "$id", "$schema"),
    )
)
"""Keywords that say something about a value and allow every value."""
_ROOT_KEYWORDS = _NOTES | {"type", "properties", "required", "$defs", "definitions"}

MAX_TEXT_CHARS = 8_000
"""Maximum length of the description of an external tool."""
MAX_SCHEMA_NODES = 20_000
"""Maximum number of values in an external schema."""
MAX_SCHEMA_DEPTH = 100
_MAX_RESOLVED_NODES = 5_000
_MAX_REFERENCES = 100
_DATA_KEYWORDS = ("default", "const", "enum", "examples")


class JsonSchemaType:
    """The annotation of a parameter whose values only a JSON Schema describes.

    `kinds` are the names of the JSON types that it allows; it is empty if it does not say.
    """

    def __init__(self, schema: JsonObject) -> None:
        self.tooli_schema = schema
        self.kinds = _json_kinds(schema)

    def tooli_shape(self) -> Structured:
        """Return the shape: a value whose text is JSON."""
        return Structured(self)

    def __repr__(self) -> str:
        return f"JsonSchemaType({self.tooli_schema!r})"


# ------------------------------------------------------------------ the schema


def checked_schema(schema: Mapping[str, object] | None, source: str) -> JsonObject:
    """Return a copy of an external input schema; raise a DefinitionError if it is not valid.

    Only descriptions are changed: they lose control sequences and invisible characters.
    """
    copied = _copy_schema({} if schema is None else schema, source, "input")
    copied.setdefault("type", "object")
    if copied["type"] != "object":
        raise DefinitionError(f"{source}: the input schema must describe an object")
    copied.setdefault("properties", {})
    return copied


def checked_output(schema: Mapping[str, object], source: str) -> JsonObject:
    """Return a copy of an external output schema with clean descriptions.

    It may become a part of another schema, so all its references name definitions.
    """
    return _DefinedReferences(_copy_schema(schema, source, "output"), source).schema


def _copy_schema(schema: Mapping[str, object], source: str, kind: str) -> JsonObject:
    copied = _Copier(source).copy(schema)
    if not is_object(copied):
        raise DefinitionError(f"{source}: the {kind} schema must be a JSON object")
    problem = find_invalid_keyword(copied)
    if problem is not None:
        raise DefinitionError(f"{source}: the {kind} schema is not valid: {problem}")
    return copied


class _Copier:
    """Copies a JSON value, which is bounded in size and depth."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0

    def copy(self, node: Any, depth: int = 0) -> Any:
        """Return the copy of a value."""
        self._count += 1
        if self._count > MAX_SCHEMA_NODES or depth > MAX_SCHEMA_DEPTH:
            raise DefinitionError(
                f"{self._source}: the schema is too large: at most {MAX_SCHEMA_NODES:,} values, "
                f"at most {MAX_SCHEMA_DEPTH} inside each other"
            )
        if is_list(node):
            return [self.copy(item, depth + 1) for item in node]
        if hasattr(node, "items"):
            return {str(k): self._copy_keyword(str(k), v, depth + 1) for k, v in node.items()}
        if node is None or isinstance(node, (str, int, float)):
            return node
        raise DefinitionError(f"{self._source}: {quote(node)} in the schema is not a JSON value")

    def _copy_keyword(self, key: str, value: object, depth: int) -> Any:
        if key in ("description", "title", "$comment") and isinstance(value, str):
            return clean_text(value)
        return self.copy(value, depth)


class _DefinedReferences:
    """A schema in which all references have the form `#/$defs/NAME`."""

    def __init__(self, schema: JsonObject, source: str) -> None:
        self._root = schema
        self._source = source
        self._names: dict[str, str] = {}
        self._targets: dict[str, Any] = {}
        rewritten = self._rewrite(schema)
        if self._targets:
            rewritten["$defs"] = {**rewritten.get("$defs", {}), **self._targets}
        self.schema: JsonObject = rewritten

    def _rewrite(self, node: Any, is_data: bool = False) -> Any:
        if is_list(node):
            return [self._rewrite(item, is_data) for item in node]
        if not is_object(node):
            return node
        reference = None if is_data else node.get("$ref")
        found = {
            key: self._rewrite(value, is_data or key in _DATA_KEYWORDS)
            for key, value in node.items()
            if key != "$ref" or not isinstance(reference, str)
        }
        if isinstance(reference, str):
            name = self._name(reference)
            return found if name is None else {"$ref": f"#/$defs/{name}", **found}
        return found

    def _name(self, reference: str) -> str | None:
        """Return the name of the definition for a reference; None if it is outside the schema."""
        start, _, rest = reference.rpartition("/")
        if start == "#/$defs" and "~" not in rest:
            return rest
        target = find_reference(reference, self._root)
        if target is None:
            return None
        if reference not in self._names:
            if len(self._names) == _MAX_REFERENCES:
                raise DefinitionError(f"{self._source}: the output schema has too many references")
            name = f"part-{len(self._names) + 1}"
            while name in self._root.get("$defs", {}):
                name += "-"
            self._names[reference] = name
            self._targets[name] = {}
            parts = {key: value for key, value in target.items() if key != "$defs"}
            self._targets[name] = self._rewrite(parts)
        return self._names[reference]


def clean_text(text: object, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return an external text without control sequences and invisible characters."""
    cleaned = sanitize(text if isinstance(text, str) else "")[0]
    return cleaned if len(cleaned) <= max_chars else f"{cleaned[: max_chars - 1]}…"


def resolved_schema(schema: object, root: JsonObject) -> JsonObject:
    """Return the schema of a property for documents, with its references replaced.

    A recursive schema is cut where it contains itself, and a very large one where it gets large.
    """
    return _Resolver(root).resolve(schema) if is_object(schema) else {}


class _Resolver:
    """Replaces references by what they name."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._count = 0

    def resolve(self, node: Any, inside: tuple[str, ...] = ()) -> Any:
        """Return a part of the schema. `inside` are the references that contain it."""
        self._count += 1
        if is_list(node):
            return [self.resolve(item, inside) for item in node]
        if not is_object(node):
            return node
        rest = {
            key: value if key in _DATA_KEYWORDS else self.resolve(value, inside)
            for key, value in node.items()
            if key not in ("$defs", "definitions", "$ref")
        }
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return rest
        target = find_reference(reference, self._root) or {}
        if reference in inside or self._count > _MAX_RESOLVED_NODES:
            return {**({"type": target["type"]} if "type" in target else {}), **rest}
        return {**self.resolve(target, (*inside, reference)), **rest}


def _json_kinds(schema: JsonObject) -> frozenset[str]:
    """Return the JSON types that a resolved schema allows; empty if it does not say."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset((kind,))
    if is_list(kind):
        return frozenset([str(name) for name in kind])
    for keyword in ("enum", "const"):
        if keyword in schema:
            values: Any = schema["enum"] if keyword == "enum" else [schema["const"]]
            return frozenset(map(json_kind, values))
    for keyword in ("anyOf", "oneOf"):
        if is_list(schema.get(keyword)):
            parts = [_json_kinds(part) if is_object(part) else None for part in schema[keyword]]
            return (
                frozenset([k for part in parts for k in part or ()]) if all(parts) else frozenset()
            )
    return frozenset()


def json_kind(value: object) -> str:
    """Return the name of the JSON type of a value."""
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "array" if is_list(value) else "object"


# ------------------------------------------------------------------ parameters


def read_params(
    schema: JsonObject, positional: Sequence[str] = (), *, fill_defaults: bool = False
) -> tuple[Param, ...]:
    """Return the properties of a checked schema as parameters.

    All are options, except those in `positional`. `fill_defaults=True` passes the defaults of the
    schema to the function.
    """
    required: Container[str] = schema.get("required", ())
    properties: JsonObject = schema["properties"]
    flags = name_flags([name for name in properties if name not in positional])
    ordered = [*[n for n in positional if n in properties], *flags]
    params: list[Param] = []
    for name in ordered:
        documented = resolved_schema(properties[name], schema)
        annotation, shape = _annotation_and_shape(documented)
        default = documented.get("default", MISSING) if fill_defaults else MISSING
        is_required = name in required
        flag = flags.get(name)
        no_flag = f"--no-{flag[2:]}" if flag is not None and is_bool(shape) else None
        negations = () if no_flag is None or no_flag in flags.values() else (no_flag,)
        help_text = clean_text(documented.get("description"), 1_000)
        params.append(
            Param(
                name=name,
                shape=shape,
                annotation=annotation,
                kind="argument" if flag is None else "option",
                required=is_required,
                default=MISSING if is_required else default,
                flags=() if flag is None else (flag,),
                negations=negations,
                decls=() if flag is None else ("/".join((flag, *negations)),),
                has_tooli_info=True,
                option_kwargs={"help": help_text} if help_text else {},
                exact_type=getattr(shape, "type", None),
                has_valid_default=not is_required and default is not MISSING,
                schema=documented,
                is_omittable=not is_required and default is MISSING,
            )
        )
    return tuple(params)


def name_flags(names: Sequence[str]) -> dict[str, str]:
    """Return a different flag for each name: `--max-size` for max_size, `--filter` for $filter."""
    flags: dict[str, str] = {}
    used = UniqueNames(["help"])  # it always shows the help
    for position, name in enumerate(names, 1):
        base = to_ascii_word(name, "-") or f"arg-{position}"
        base = f"arg-{base}" if base == "help" else base
        flags[name] = f"--{used.add(base, f'{base}-{{}}'.format)}"
    return flags


def is_python_name(name: str) -> bool:
    """True if a name can be a parameter of a Python function, and of a command of Typer."""
    return name.isidentifier() and not iskeyword(name) and name != "help"


def python_names(names: Sequence[str]) -> dict[str, str]:
    """Return a different Python identifier for each name, by name."""
    found: dict[str, str] = {}
    used = UniqueNames(filter(is_python_name, names))
    for position, name in enumerate(names, 1):
        if is_python_name(name):
            found[name] = name
            continue
        base = to_ascii_word(name, "_") or f"arg_{position}"
        base = base if is_python_name(base) else f"arg_{base}"
        found[name] = used.add(base, f"{base}_{{}}".format)
    return found


def to_ascii_word(name: str, separator: str) -> str:
    """Return a name with every run of other characters than letters and digits replaced."""
    chars = [char if char.isascii() and char.isalnum() else " " for char in name]
    return separator.join("".join(chars).split())


def _annotation_and_shape(schema: JsonObject) -> tuple[Any, Shape]:
    """Return the annotation and the shape of values that a resolved schema describes."""
    inner, is_nullable = _without_null(schema)
    annotation, shape = _plain_annotation(inner)
    if shape is None:
        described = JsonSchemaType(schema)
        return described, described.tooli_shape()
    if is_nullable:
        return annotation | None, Maybe(shape)
    return annotation, shape


def _without_null(schema: JsonObject) -> tuple[JsonObject, bool]:
    """Return the schema of the values other than null, and whether null is allowed."""
    kind = schema.get("type")
    if is_list(kind) and "null" in kind and len(kind) == 2:
        other = next((name for name in kind if name != "null"), "null")
        values = schema.get("enum")
        rest = {**schema, "type": other}
        return ({**rest, "enum": [v for v in values if v is not None]} if values else rest), True
    for keyword in ("anyOf", "oneOf"):
        members = schema.get(keyword)
        if is_list(members) and len(members) == 2 and {"type": "null"} in members:
            other = next((m for m in members if m != {"type": "null"}), None)
            if is_object(other) and not is_object(other.get("not")):
                notes = {key: value for key, value in schema.items() if key in _NOTES}
                return {**other, **notes}, True
    return schema, False


def _plain_annotation(schema: JsonObject) -> tuple[Any, Shape | None]:
    """Return the annotation and shape of one plain value, or of a list; (None, None) for others."""
    kind, values = schema.get("type"), schema.get("enum")
    if "const" in schema:
        values = [schema["const"]]
    if is_list(values) and values:
        choices: Sequence[Any] = values
        is_plain = type(choices[0]) in (str, int) and len(set(map(type, choices))) == 1
        if is_plain and all([str(choice).isprintable() for choice in choices]):
            from typing import Literal

            unique = tuple(dict.fromkeys(choices))
            literal: Any = Literal
            return literal[unique], Choice(unique)
        return None, None
    if isinstance(kind, str) and kind in _PLAIN_TYPES and not _BRANCHES & schema.keys():
        plain = _PLAIN_TYPES[kind]
        return plain, SCALAR_SHAPES[plain]
    items = schema.get("items")
    if kind == "array" and is_object(items) and "prefixItems" not in schema:
        annotation, shape = _plain_annotation(items)
        if shape is not None and not isinstance(shape, ListOf) and not is_bool(shape):
            return list.__class_getitem__(annotation), ListOf(shape)
    return None, None


_BRANCHES = frozenset(("anyOf", "oneOf", "allOf", "not", "if", "$ref"))


# ------------------------------------------------------------------ the check


def make_check(schema: JsonObject, params: Sequence[Param], source: str) -> SchemaCheck | None:
    """Return the check of the arguments of a checked schema; None if their types are enough."""
    extra = schema.get("additionalProperties", False)
    takes_extra = extra is not False or "patternProperties" in schema
    is_plain = _only_has(schema, _ROOT_KEYWORDS | {"additionalProperties"})
    declared = schema["properties"]
    plain = [p.schema == declared[p.name] and _is_plain(p.schema or {}, p) for p in params]
    if is_plain and not takes_extra and all(plain):
        return None
    return SchemaCheck(schema, source, takes_extra)


def _only_has(schema: Mapping[str, object], keywords: Container[str]) -> bool:
    return all([key in keywords or key[:2] == "x-" for key in schema])


def _is_plain(schema: Mapping[str, object], param: Param) -> bool:
    """True if the shape of a parameter says all that its schema says."""
    shape = unwrap_optional(param.shape)
    if isinstance(shape, Structured):
        return _only_has(schema, _NOTES)
    inner, _ = _without_null(dict(schema))
    items = inner.get("items", {})
    keywords = _NOTES | {"type", "enum", "const", "items"}
    return _only_has(inner, keywords) and _only_has(items, _NOTES | {"type", "enum", "const"})


class SchemaCheck:
    """Checks the arguments of a tool against its JSON Schema. The first check loads jsonschema."""

    def __init__(
        self,
        schema: JsonObject,
        source: str,
        takes_extra: bool,
        renamed: Mapping[str, str] | None = None,
        fixed: Mapping[str, object] | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.hidden = hidden  # names that a transform has taken from callers
        self._schema = schema
        self._source = source
        self._renamed = renamed or {}  # names in the schema, by the names that callers use
        self._fixed = fixed or {}  # values of arguments that callers do not see
        self.takes_extra = takes_extra  # True: arguments that are not properties are passed on
        self._validator: Validator | None = None

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        names = (self._renamed, self._fixed, self.hidden)
        return SchemaCheck, (self._schema, self._source, self.takes_extra, *names)

    def with_names(
        self, renamed: Mapping[str, str], fixed: Mapping[str, object], hidden: Iterable[str]
    ) -> SchemaCheck:
        """Return the check of the arguments of a `ToolTransform`, which has other names.

        `hidden` are the names that callers can no longer use.
        """
        merged = {new: self._renamed.get(old, old) for new, old in renamed.items()}
        kept = {new: old for new, old in self._renamed.items() if new not in renamed.values()}
        all_fixed = {**self._fixed, **{self._renamed.get(n, n): v for n, v in fixed.items()}}
        all_hidden = self.hidden.union(hidden, renamed.values())
        return self._copy({**kept, **merged}, all_fixed, all_hidden)

    def _copy(
        self, renamed: Mapping[str, str], fixed: Mapping[str, object], hidden: frozenset[str]
    ) -> SchemaCheck:
        return SchemaCheck(self._schema, self._source, self.takes_extra, renamed, fixed, hidden)

    def find_problems(
        self, arguments: Mapping[str, object], known: Collection[str]
    ) -> Iterator[SchemaProblem]:
        """Yield the problems of arguments, without those of the parameters `known` to be wrong."""
        names = {old: new for new, old in self._renamed.items()}
        given = {self._renamed.get(name, name): value for name, value in arguments.items()}
        for code, path, message in self._validate({**given, **self._fixed}):
            first, dot, rest = (path or "").partition(".")
            field = f"{names.get(first, first)}{dot}{rest}"
            if field not in known and names.get(first, first) not in known:
                if first in names:
                    message = message.replace(repr(path), repr(field), 1)
                yield code, field or None, message

    def _validate(self, arguments: JsonObject) -> Sequence[SchemaProblem]:
        try:
            if self._validator is None:
                self._validator = build_validator(self._schema)
            return find_problems(self._validator, arguments)
        except ImportError:
            raise DependencyError(
                f"The arguments of {self._source} cannot be checked: jsonschema is not installed.",
                suggestion=Suggestion("fix", "Run: pip install 'tooli[providers]'"),
            ) from None
        except Exception as failure:  # jsonschema, referencing and re raise errors of many classes
            reason = clean_text(str(getattr(failure, "message", failure)), 200)
            raise DependencyError(
                f"The input schema of {self._source} is not valid: {reason}",
                suggestion=Suggestion(
                    "use_different_tool", "Tell the author of the source; the tool was not called."
                ),
            ) from failure
