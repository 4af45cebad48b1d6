"""The words of `--select`: which fields of a record are shown, and under which names.

path, size as bytes, owner.name, tags[0]

A dotted field keeps its place (`{"owner": {"name": …}}`), passes through lists, and may be
renamed; a place in a list, or a name of its own, stands at the top.
"""

from __future__ import annotations

from tooli.contract.fields import Many, Unfit, part, plain_value, read_path, reader, write_path
from tooli.contract.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tooli.contract.fields import FieldPath, Fields

    Plan: TypeAlias = dict[str, "Plan | None"]
    """The fields that stay, each with those of its own that stay; None keeps all of it."""


def compile_selection(text: str, fields: Fields) -> Callable[[Any], Any]:
    """What makes the record that is shown of a record; raises Unfit."""
    plan: Plan = {}
    named: dict[str, FieldPath] = {}
    order: dict[str, None] = {}  # the fields that are shown, as they were said
    for said in text.split(","):
        path, name = _read(said)
        fields.at(path)
        if name is None and not any([isinstance(step, int) for step in path]):
            _add(plan, path)
            name = str(path[0])
        else:
            name = name or write_path(path)
            if name in order:
                raise _twice(name)
            named[name] = path
        if name in plan and name in named:
            raise _twice(name)
        order[name] = None
    return _projector(plan, {name: reader(path) for name, path in named.items()}, tuple(order))


def _twice(name: str) -> Unfit:
    return Unfit(f"{name!r} is selected twice: name one of them with 'as'")


def _read(said: str) -> tuple[FieldPath, str | None]:
    """One field, and the name that it gets."""
    words = said.split()
    if len(words) == 1 and words != ["."]:
        return read_path(words[0]), None
    if len(words) == 3 and words[1] == "as":
        return read_path(words[0]), words[2]
    if not words:
        raise Unfit("A field is missing: write fields with commas between them")
    raise Unfit(f"{said.strip()!r} is no field: write name, name.part, name[0] or name as other")


def _add(plan: Plan, path: FieldPath) -> None:
    for step in path[:-1]:
        inner = plan.setdefault(str(step), {})
        if inner is None:
            return  # all of it is kept already
        plan = inner
    plan[str(path[-1])] = None


def _projector(
    plan: Plan, named: dict[str, Callable[[Any], Any]], order: tuple[str, ...]
) -> Callable[[Any], Any]:
    deep = any([inner is not None for inner in plan.values()])
    if not deep and not named:

        def choose(record: Any) -> Any:
            if record.__class__ is dict:
                return {name: record[name] for name in order if name in record}
            return _kept(record, plan)

        return choose

    def project(record: Any) -> Any:
        shown = _kept(record, plan)
        if not is_object(shown):
            return shown
        for name, read in named.items():
            value = read(record)
            shown[name] = list(value) if value.__class__ is Many else value
        return {name: shown[name] for name in order if name in shown}

    return project


def _kept(value: Any, plan: Plan) -> Any:
    """What a plan keeps of a value; lists are passed through, other values have no fields."""
    if is_list(value):
        return [_kept(item, plan) for item in value]
    if value.__class__ is not dict and hasattr(value.__class__, "__dataclass_fields__"):
        has: Any = value.__dataclass_fields__
    else:
        value = has = plain_value(value)
        if not is_object(value):
            return value
    shown: dict[str, Any] = {}
    for name, inner in plan.items():
        if name in has:
            kept = part(value, name)
            shown[name] = kept if inner is None else _kept(kept, inner)
    return shown
