"""The language of `--select`: the fields of a record to show, and their names.

path, size as bytes, owner.name, tags[0]

A dotted field keeps its nesting (`{"owner": {"name": …}}`) and passes through lists. A renamed
field and an item of a list become fields of the record itself.
"""

from __future__ import annotations

from tooli.records.field_paths import (
    ExpressionError,
    MultipleValues,
    build_getter,
    format_path,
    get_member,
    parse_path,
    to_json_value,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tooli.records.field_paths import FieldPath, RecordFields

    FieldTree: TypeAlias = dict[str, "FieldTree | None"]
    """The selected fields, each with its own selected fields; None selects all of them."""


def compile_selection(text: str, fields: RecordFields) -> Callable[[Any], Any]:
    """Return a function that selects fields of a record. Raises ExpressionError."""
    tree: FieldTree = {}
    renamed_paths: dict[str, FieldPath] = {}
    order: dict[str, None] = {}  # the shown fields, in the order of the selection
    for field_text in text.split(","):
        path, name = _parse_field(field_text)
        fields.schemas_at(path)
        if name is None and not any([isinstance(step, int) for step in path]):
            _add_path(tree, path)
            name = str(path[0])
        else:
            name = name or format_path(path)
            if name in order:
                raise _duplicate_error(name)
            renamed_paths[name] = path
        if name in tree and name in renamed_paths:
            raise _duplicate_error(name)
        order[name] = None
    return _build_projector(
        tree, {name: build_getter(path) for name, path in renamed_paths.items()}, tuple(order)
    )


def _duplicate_error(name: str) -> ExpressionError:
    return ExpressionError(f"{name!r} is selected twice: rename one of them with 'as'")


def _parse_field(text: str) -> tuple[FieldPath, str | None]:
    """Parse one field; return its path, and its new name if it has one."""
    parts = text.split()
    if len(parts) == 1 and parts != ["."]:
        return parse_path(parts[0]), None
    if len(parts) == 3 and parts[1] == "as":
        return parse_path(parts[0]), parts[2]
    if not parts:
        raise ExpressionError("A field is missing: separate fields with commas")
    raise ExpressionError(
        f"{text.strip()!r} is not a field: write name, name.part, name[0] or name as other"
    )


def _add_path(tree: FieldTree, path: FieldPath) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(str(step), {})
        if inner is None:
            return  # the whole field is selected already
        tree = inner
    tree[str(path[-1])] = None


def _build_projector(
    tree: FieldTree, getters: dict[str, Callable[[Any], Any]], order: tuple[str, ...]
) -> Callable[[Any], Any]:
    is_nested = any([inner is not None for inner in tree.values()])
    if not is_nested and not getters:

        def choose(record: Any) -> Any:
            if record.__class__ is dict:
                return {name: record[name] for name in order if name in record}
            return _select_fields(record, tree)

        return choose

    def project(record: Any) -> Any:
        selected = _select_fields(record, tree)
        if not is_object(selected):
            return selected
        for name, read in getters.items():
            value = read(record)
            selected[name] = list(value) if value.__class__ is MultipleValues else value
        return {name: selected[name] for name in order if name in selected}

    return project


def _select_fields(value: Any, tree: FieldTree) -> Any:
    """Return the selected fields of a value; lists are passed through, scalars stay as they are."""
    if is_list(value):
        return [_select_fields(item, tree) for item in value]
    if value.__class__ is not dict and hasattr(value.__class__, "__dataclass_fields__"):
        members: Any = value.__dataclass_fields__
    else:
        value = members = to_json_value(value)
        if not is_object(value):
            return value
    selected: dict[str, Any] = {}
    for name, inner in tree.items():
        if name in members:
            member = get_member(value, name)
            selected[name] = member if inner is None else _select_fields(member, inner)
    return selected
