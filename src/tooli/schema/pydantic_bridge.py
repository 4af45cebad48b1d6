"""Validation and JSON Schema with pydantic, for types that are not plain.

pydantic, typer, typing, json and datetime are imported where they are used, because importing
this module must not load them.
"""

from __future__ import annotations

import sys
from itertools import islice

from tooli.core import find_loaded
from tooli.core.call_secrets import call_secrets
from tooli.core.secret_fields import validate_with_secrets
from tooli.core.tool import (
    MAX_PROBLEMS,
    MISSING,
    ConversionError,
    join_path,
    merge_errors,
    quote,
)
from tooli.errors import DefinitionError
from tooli.schema.hash_collisions import HashChecker
from tooli.schema.ignored_fields import IgnoredField, IgnoredFieldFinder
from tooli.schema.param_info import ParamInfo
from tooli.schema.pydantic_messages import (
    MISSING_FIELD,
    UNKNOWN_FIELD_ERRORS,
    UnknownField,
    describe_error,
    describe_unknown_field,
    expected_text,
    suggest_value,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from pydantic import TypeAdapter

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param

_adapters: dict[int, tuple[Any, TypeAdapter[Any], HashChecker, IgnoredFieldFinder]] = {}


def get_type_adapter(annotation: object) -> TypeAdapter[object]:
    """Return the TypeAdapter of an annotation. Adapters are cached."""
    found = _adapters.get(id(annotation))
    if found is not None:
        return found[1]
    import pydantic

    try:
        type_adapter = _build_type_adapter(pydantic, annotation)
    except Exception as failure:  # pydantic raises errors of many classes here
        raise DefinitionError(f"pydantic cannot read {annotation!r}: {failure}") from failure
    if not getattr(type_adapter, "pydantic_complete", True):
        raise DefinitionError(
            f"pydantic cannot read {annotation!r}: it names a type that is not defined"
        )
    # The cache keeps the annotation, so that its id is not reused.
    _adapters[id(annotation)] = (
        annotation,
        type_adapter,
        HashChecker(type_adapter),
        IgnoredFieldFinder(type_adapter),
    )
    return type_adapter


DECIMAL_PATTERN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""The text of a decimal, as a pattern that every JSON Schema validator supports."""


def pydantic_json_schema(
    annotation: Any, mode: str, class_keyword: str | None = None
) -> JsonObject:
    """Return pydantic's JSON Schema of an annotation, with a pattern for decimals as text.

    `class_keyword` is a keyword that identifies the class of each model and enum.
    """
    from pydantic.json_schema import GenerateJsonSchema

    def mark_class(json_schema: JsonObject, schema: Any) -> JsonObject:
        if class_keyword is None or "ref" not in schema or "$ref" in json_schema:
            return json_schema
        return {**json_schema, class_keyword: schema["ref"]}

    class SchemaGenerator(GenerateJsonSchema):
        def model_schema(self, schema: Any) -> JsonObject:
            return mark_class(super().model_schema(schema), schema)

        def dataclass_schema(self, schema: Any) -> JsonObject:
            return mark_class(super().dataclass_schema(schema), schema)

        def typed_dict_schema(self, schema: Any) -> JsonObject:
            return mark_class(super().typed_dict_schema(schema), schema)

        def enum_schema(self, schema: Any) -> JsonObject:
            return mark_class(super().enum_schema(schema), schema)

        def decimal_schema(self, schema: Any) -> JsonObject:
            json_schema = super().decimal_schema(schema)
            if self.mode == "validation" and not schema.get("allow_inf_nan"):
                for part in json_schema.get("anyOf", ()):
                    if part.get("type") == "string":  # some versions of pydantic add a pattern
                        part.setdefault("pattern", DECIMAL_PATTERN)
            return json_schema

        def field_is_required(self, field: Any, total: bool) -> bool:
            # A result contains every field of a model, also those that have a default.
            if self.mode == "serialization" and field["type"] != "typed-dict-field":
                return not field.get("serialization_exclude") and not field.get(
                    "serialization_exclude_if"
                )
            return super().field_is_required(field, total)

    type_adapter = get_type_adapter(annotation)
    schema = type_adapter.json_schema(mode=mode, schema_generator=SchemaGenerator)  # type: ignore[arg-type]
    if "pydantic.types" in sys.modules or "tooli.inputs.secret" in sys.modules:
        _remove_secret_values(schema, schema, ())
    return schema


def _remove_secret_values(node: object, root: JsonObject, references: tuple[str, ...]) -> bool:
    """Remove defaults and examples of secrets. Return True if the schema describes a secret."""
    if is_list(node):
        return any([_remove_secret_values(item, root, references) for item in node])
    if not is_object(node):
        return False
    is_secret = node.get("writeOnly") is True
    for keyword, part in node.items():
        if keyword in ("properties", "patternProperties", "$defs") and is_object(part):
            found = [_remove_secret_values(item, root, references) for item in part.values()]
            is_secret |= any(found) and keyword != "$defs"
        elif keyword not in _VALUE_KEYWORDS:
            is_secret |= _remove_secret_values(part, root, references)
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in references:
        target = root.get("$defs", {}).get(reference.rpartition("/")[2])
        is_secret |= _remove_secret_values(target, root, (*references, reference))
    for keyword in _VALUE_KEYWORDS if is_secret else ():
        if node.get(keyword) is not None:
            del node[keyword]
    return is_secret


_VALUE_KEYWORDS = ("default", "examples", "example", "const", "enum")


def _build_type_adapter(pydantic: Any, annotation: Any) -> TypeAdapter[Any]:
    try:
        return pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticSchemaGenerationError:
        config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        return pydantic.TypeAdapter(annotation, config=config)
    except pydantic.PydanticUserError as failure:
        if failure.code != "typed-dict-version":
            raise
        return pydantic.TypeAdapter(_upgrade_typed_dicts(annotation))


def _upgrade_typed_dicts(annotation: Any) -> Any:
    """Return the annotation with each `typing.TypedDict` replaced by one of `typing_extensions`.

    pydantic requires this before Python 3.12.
    """
    if hasattr(annotation, "__required_keys__") and type(annotation).__module__ == "typing":
        import typing_extensions as typing

        keys: JsonObject = {}
        for name, hint in typing.get_type_hints(annotation, include_extras=True).items():
            marker = typing.get_origin(hint)
            if marker in (typing.Required, typing.NotRequired):
                hint = hint.__args__[0]
                is_required = marker is typing.Required  # __required_keys__ ignores it in 3.10
            else:
                is_required = name in annotation.__required_keys__
            keys[name] = (typing.Required if is_required else typing.NotRequired)[
                _upgrade_typed_dicts(hint)
            ]
        upgraded: Any = typing.TypedDict(annotation.__name__, keys)  # type: ignore[operator]
        upgraded.__doc__ = annotation.__doc__
        return upgraded
    type_args = getattr(annotation, "__args__", ())
    upgraded_args = tuple([_upgrade_typed_dicts(part) for part in type_args])
    if all([new is old for new, old in zip(upgraded_args, type_args, strict=True)]):
        return annotation
    if hasattr(annotation, "copy_with"):
        return annotation.copy_with(upgraded_args)
    if type(annotation).__name__ == "UnionType":
        import typing

        return typing.Union[upgraded_args]  # noqa: UP007  the members are in a tuple
    return annotation.__origin__[upgraded_args]


def validate(annotation: object, value: object) -> object:
    """Return the value as pydantic converts it.

    The secrets in the value are recorded, so that no output contains them. Raises ConversionError
    with the errors, at most a few more than `MAX_PROBLEMS`.
    """
    if call_secrets.get() is None:
        return _validate(annotation, value)
    return validate_with_secrets(annotation, value, _validate)


def _validate(annotation: object, value: Any) -> object:
    if value.__class__ in (list, dict, tuple, str):
        get_type_adapter(annotation)
        _adapters[id(annotation)][2].check(value)
    if value.__class__ in (list, dict) and len(value) > _CHUNK_SIZE:
        container = _plain_container(annotation)
        if container is not None:
            return _validate_in_chunks(annotation, value, container)
    return _validate_whole(annotation, value)


def _validate_whole(annotation: object, value: object, first_index: int = 0) -> Any:
    """Validate a value, or the part of a list that begins at `first_index`."""
    import pydantic

    try:
        return get_type_adapter(annotation).validate_python(value)
    except pydantic.ValidationError as failure:
        raise _to_conversion_error(annotation, failure, value, first_index) from None
    except RecursionError:
        raise ConversionError("the value is nested too deeply") from None
    except TypeError as failure:
        if not _comes_from_enum(failure):
            raise
        raise ConversionError(f"{quote(value)} is not valid") from None


# ------------------------------------------------------------------ unknown fields

_MAX_FIELD_WARNINGS = 5


def validate_input(
    param: Param,
    value: object,
    warnings: list[str] | None = None,
    flags: Sequence[tuple[str, ...]] = (),
) -> object:
    """Return the argument of a parameter as pydantic converts it. Raises ConversionError.

    pydantic ignores the fields that an object does not have, unless the author forbids them. Such a
    field is an error if it was given as a flag, or if a similar field is missing. Otherwise it is
    added to `warnings`. `flags` are the locations that were given as flags.
    """
    get_type_adapter(param.annotation)
    ignored = _adapters[id(param.annotation)][3].find(value)
    if not ignored:
        return validate(param.annotation, value)
    unknown = [f for f in ignored if any([p[: len(f.location)] == f.location for p in flags])]
    try:
        valid = validate(param.annotation, value)
    except ConversionError as error:
        reasons = [error, *error.other_errors]
        missing = {reason.location for reason in reasons if reason.message == MISSING_FIELD}
        unknown += [f for f in ignored if _correct_location(f) in missing and f not in unknown]
        meant = {_correct_location(field) for field in unknown}
        others = [r for r in reasons if not (r.message == MISSING_FIELD and r.location in meant)]
        errors = [*map(_unknown_field_error, unknown), *others]
        raise merge_errors(errors, has_more=error.has_more) from None
    if unknown:
        raise merge_errors([_unknown_field_error(field) for field in unknown])
    if warnings is not None:
        for field in ignored[:_MAX_FIELD_WARNINGS]:
            path = join_path(param.name, *field.location)
            reason = describe_unknown_field(field.closest, field.known)
            warnings.append(f"{path!r} was ignored: {reason}")
        if len(ignored) > _MAX_FIELD_WARNINGS:
            warnings.append(f"Other fields of {param.name!r} were ignored as well.")
    return valid


def _correct_location(field: IgnoredField) -> tuple[str | int | None, ...]:
    """Return the location of the field that is probably meant."""
    return (*field.location[:-1], field.closest)


def _unknown_field_error(field: IgnoredField) -> ConversionError:
    message = describe_unknown_field(field.closest, field.known)
    return ConversionError(message, field.location, UnknownField(field.closest), "E1004")


# ------------------------------------------------------------------ long lists
#
# pydantic collects the errors of all items. A long list or dict is validated in parts, so that the
# validation ends after the first part with many errors.

_CHUNK_SIZE = 1000


def _plain_container(annotation: Any) -> Any:
    """Return the class of `list[…]`, `set[…]`, `dict[…]` and the like, also if they are optional.

    Returns None for other annotations: only these convert each item independently of the others.
    """
    if _is_union(annotation):
        members = [member for member in annotation.__args__ if member is not type(None)]
        annotation = members[0] if len(members) == 1 else None
    origin = getattr(annotation, "__origin__", None)
    if origin is tuple and annotation.__args__[1:] != (...,):
        return None
    return origin if origin in (list, tuple, set, frozenset, dict) else None


def _validate_in_chunks(annotation: object, value: Any, container: Any) -> Any:
    """Validate a long list or dict in parts. Stops once there are many errors."""
    is_dict = container is dict
    if is_dict is not (value.__class__ is dict):
        return _validate_whole(annotation, value)  # one error for the whole value
    errors: list[ConversionError] = []
    merged_list: list[Any] = []
    merged_dict: dict[Any, Any] = {}
    items = iter(value.items()) if is_dict else None
    for start in range(0, len(value), _CHUNK_SIZE):
        try:
            if items is None:
                part: list[Any] = value[start : start + _CHUNK_SIZE]
                merged_list += _validate_whole(annotation, part, start)
            else:
                merged_dict |= _validate_whole(annotation, dict(islice(items, _CHUNK_SIZE)))
        except ConversionError as error:
            errors += [error, *error.other_errors]
            if len(errors) > MAX_PROBLEMS or error.has_more:
                raise merge_errors(errors, has_more=True) from None
    if errors:
        raise merge_errors(errors)
    if is_dict:
        return merged_dict
    return merged_list if container is list else container(merged_list)


def _comes_from_enum(failure: TypeError) -> bool:
    """True if the `enum` module raised the error.

    In Python 3.10, `Flag` raises TypeError for a value that is not a number.
    """
    trace = failure.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "enum"


def _to_conversion_error(
    annotation: object, failure: Any, value: object, first_index: int = 0
) -> ConversionError:
    reasons: list[ConversionError] = []

    def find_schema() -> JsonObject:
        try:
            return get_type_adapter(annotation).json_schema()
        except Exception:  # pydantic raises errors of many classes here
            return {}

    errors = _first_errors(failure, value)
    merged = _merge_union_errors(annotation, errors, value)
    if merged is not None:
        return merged
    for error in errors:
        location = tuple(error["loc"])
        if first_index and location and isinstance(location[0], int):
            location = (location[0] + first_index, *location[1:])
        message = describe_error(error, find_schema)
        suggested = suggest_value(error, find_schema)
        code = "E1004" if error["type"] in UNKNOWN_FIELD_ERRORS else "E1003"
        reasons.append(ConversionError(message, location, suggested, code))
    return merge_errors(reasons, has_more=len(reasons) < failure.error_count())


def _merge_union_errors(
    annotation: Any, errors: list[JsonObject], value: object
) -> ConversionError | None:
    """Return one error for a value that is of no member of a union; None if only parts differ.

    pydantic reports an error for each member, whose name is the location. The errors of an optional
    type have no such name.
    """
    members = getattr(annotation, "__args__", ()) if _is_union(annotation) else ()
    is_optional = len([member for member in members if member is not type(None)]) < 2
    if is_optional or any([len(error["loc"]) != 1 for error in errors]):
        return None
    expected = [
        expected_text(error["type"]) for error in errors if error["type"] != "none_required"
    ]
    if len(expected) < 2 or None in expected:
        return None
    text = " or ".join(dict.fromkeys([text for text in expected if text is not None]))
    is_shown = isinstance(value, (str, int, float))
    return ConversionError(f"{quote(value)} is not {text}" if is_shown else f"{text} is required")


_MAX_CONVERTED_ERRORS = 4 * MAX_PROBLEMS


def _first_errors(failure: Any, value: object) -> list[JsonObject]:
    """Return all errors of a ValidationError, or its first ones if it has very many.

    `failure.errors()` builds a dict for each error. For many errors this takes much longer than
    the validation, so the first ones are read from `failure.json()`.
    """
    if failure.error_count() > _MAX_CONVERTED_ERRORS:
        try:
            text = failure.json(include_url=False, include_input=False)
        except ValueError:  # text that is not valid Unicode
            return failure.errors(include_url=False)
        decode, position = _load_json().JSONDecoder().raw_decode, 1
        errors: list[JsonObject] = []
        while len(errors) <= MAX_PROBLEMS:
            error, position = decode(text, position)
            errors.append({**error, "input": _part_at(value, error["loc"])})
            position += 1  # the comma
        return errors
    return failure.errors(include_url=False)


def _part_at(value: Any, location: Sequence[str | int]) -> object:
    """Return the part of a value at a location, or None if there is none."""
    for step in location:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def wrap_typer_callback(callback: Any) -> Callable[[Any], Any]:
    """Return a function that calls a parameter's callback as Typer does."""
    import typer
    from typer.core import TyperCommand
    from typer.main import get_param_callback

    context = typer.Context(TyperCommand(name=None))
    typer_callback: Any = get_param_callback(callback=callback)

    class SingleParameter:  # the attributes of a parameter that Typer reads
        multiple = False
        nargs = 1
        default = None

    return lambda value: typer_callback(context, SingleParameter(), value)


def iter_model_fields(model: Any) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the fields of a model as options: name, annotation and default."""
    from typing import Annotated

    annotated: Any = Annotated
    for name, field in model.model_fields.items():
        kwargs = {"help": field.description} if field.description else {}
        extras = (*field.metadata, ParamInfo("option", ..., (), kwargs))
        default = MISSING if field.is_required() else field.get_default(call_default_factory=True)
        yield name, annotated[(field.annotation, *extras)], default


def parse_text(annotation: Any, text: str, option_kwargs: Mapping[str, Any]) -> Any:
    """Parse a date, a UUID, a Decimal, a union or another single value from text."""
    formats = option_kwargs.get("formats")
    if formats:
        from datetime import datetime

        for format_text in formats:
            try:
                return datetime.strptime(text, format_text)
            except ValueError:
                continue
        raise ConversionError(f"{quote(text)} does not match {' or '.join(map(repr, formats))}")
    members = getattr(annotation, "__args__", ()) if _is_union(annotation) else ()
    for member in members:  # from left to right: `int | str` makes "5" the number 5
        try:
            return validate(member, text)
        except ConversionError:
            continue
    return validate(annotation, text)


def _is_union(annotation: object) -> bool:
    origin = getattr(annotation, "__origin__", None)
    is_typing_union = origin is not None and origin is find_loaded("typing", "Union")
    return is_typing_union or type(annotation).__name__ == "UnionType"


def _load_json() -> Any:
    import json

    return json
