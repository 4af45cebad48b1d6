"""Encode pydantic models as JSON with pydantic's own serializer, which is written in Rust.

A list of models is encoded about eight times faster than by converting each model to a dict. The
output is the same. Values that JSON cannot represent, such as NaN, are left to `to_jsonable`, which
adds a warning for each replacement.
"""

from __future__ import annotations

import sys

from tooli.text.jsonable import is_list, is_object
from tooli.text.long_texts import contains_any

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_NOT_FINITE = ("NaN", "Infinity")


def encode_models(value: Any) -> bytes | None:
    """Return the JSON of a model, or of a list of models of one class.

    Returns None for any other value, and for models that contain NaN, infinity, or values that do
    not match the types of their fields.
    """
    is_many = value.__class__ is list
    model_types: set[type] = set(map(type, value)) if is_many else {value.__class__}
    if len(model_types) != 1:
        return None
    serializer = _find_serializer(model_types.pop())
    if serializer is None:
        return None
    try:
        data: bytes = serializer.to_json(
            value if is_many else [value], by_alias=True, warnings="error"
        )
    except Exception:  # `to_jsonable` converts the fields one by one
        return None
    core = sys.modules["pydantic_core"]
    if contains_any(data, _NOT_FINITE, core):
        return None
    return data if is_many else data[1:-1]


_serializers: dict[type, Any] = {}
_MAX_SERIALIZERS = 1000
"""Limit for programs that create classes at run time."""


def _find_serializer(model_type: Any) -> Any:
    """Return the serializer of lists of a class; None if pydantic cannot write the class alone."""
    if model_type not in _serializers:
        if len(_serializers) >= _MAX_SERIALIZERS:
            _serializers.clear()
        try:
            _serializers[model_type] = _make_serializer(model_type)
        except Exception:  # a version of pydantic with another interface
            _serializers[model_type] = None
    return _serializers[model_type]


def _make_serializer(model_type: Any) -> Any:
    """Return a serializer that writes NaN and infinity as such, so that they are found.

    The serializer of the class itself writes them as null, without a warning.
    """
    pydantic, core = sys.modules["pydantic"], sys.modules["pydantic_core"]
    is_model = issubclass(model_type, pydantic.BaseModel)
    if not is_model or model_type.model_dump is not pydantic.BaseModel.model_dump:
        return None
    schema = _write_constants(pydantic.TypeAdapter(list[model_type]).core_schema)
    # Without this argument, fields that are models use the serializers of their classes.
    return core.SchemaSerializer(schema, _CONSTANTS, _use_prebuilt=False)


_CONSTANTS = {"ser_json_inf_nan": "constants"}
_CONFIGURED_SCHEMAS = ("model", "dataclass", "typed-dict")


def _write_constants(schema: object) -> Any:
    """Return a copy of a core schema whose parts write NaN and infinity as constants."""
    if is_list(schema):
        return type(schema)([_write_constants(part) for part in schema])
    if not is_object(schema):
        return schema
    copy = {
        name: part if name == "metadata" else _write_constants(part)
        for name, part in schema.items()
    }
    if copy.get("type") in _CONFIGURED_SCHEMAS:
        copy["config"] = {**(copy.get("config") or {}), **_CONSTANTS}
    return copy
