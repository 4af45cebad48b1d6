"""What a human is shown of a call: its arguments, its files and its plan, as lines of text.

    argument ─▶ describe_arguments ─▶ shorten_value ─▶ format_lines ─▶ terminal, client
                every part             long parts       every argument keeps some lines

Arguments are read as `core/call_fingerprint.py` reads them, and not from their JSON. So a human is
shown what an approval is bound to, including fields that a model does not serialize.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256

from tooli.core.call_fingerprint import (
    caller_arguments,
    global_name,
    instance_state,
    is_importable,
    is_input,
    is_loaded_instance,
    is_stream,
    reduce_hidden_state,
    type_of,
)
from tooli.core.tool import MISSING
from tooli.errors import FormatError, Suggestion, ToolError
from tooli.pipeline.planning import is_plan
from tooli.text.escapes import escape_text
from tooli.text.json_encoder import encode
from tooli.text.jsonable import (
    MAX_JSON_DEPTH,
    convert_one_step,
    is_list,
    is_object,
    is_set,
    to_jsonable,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core.call import Call

MAX_SHOWN_BYTES = 100_000
"""Maximum size of the JSON of what is shown. A larger call cannot be approved."""
MAX_SHOWN_ITEMS = 200
_HEAD_CHARS, _TAIL_CHARS = 700, 200
_DIGEST_CHARS = 16
_MAX_LINES = 32
_MIN_ENTRY_LINES = 3
_MAX_PLAN_ENTRIES = 8
_DEFAULT_WIDTH, _MIN_WIDTH = 160, 40
_CONTINUATION = "┆ "
"""Begins the second line of a long value. Every line has an indent, so a value cannot begin one."""


# ------------------------------------------------------------------ values


def describe_arguments(call: Call) -> dict[str, Any]:
    """Return the bound arguments in JSON types, with all their parts. Secrets are masked."""
    try:
        return {
            name: _Describer().describe(value) for name, value in caller_arguments(call).items()
        }
    except RecursionError:
        raise too_large_error(call.tool.name) from None


class _Describer:
    """Describes a value in JSON types. Equal descriptions have equal parts."""

    def __init__(self) -> None:
        self._parent_ids: list[int] = []

    def describe(self, value: Any) -> Any:
        """Return the description of a value."""
        leaf = _describe_leaf(value)
        if leaf is not _HAS_PARTS:
            return leaf
        if id(value) in self._parent_ids:
            return "<contains itself>"
        if len(self._parent_ids) >= MAX_JSON_DEPTH:
            raise RecursionError
        self._parent_ids.append(id(value))
        try:
            return self._describe_parts(value)
        except (ToolError, RecursionError):
            raise
        except Exception:  # the value's own code failed
            return f"<{type(value).__name__}, not shown>"
        finally:
            self._parent_ids.pop()

    def _describe_parts(self, value: Any) -> Any:
        kind = type_of(value)
        if is_input(kind):
            return self.describe(value.content)
        if is_loaded_instance(value, "enum", "Enum"):
            return self.describe(value.value)
        state = self._describe_pairs(_shown_state(value).items())
        if is_object(value):
            content = self._describe_pairs(_DICT.items(value))
        elif is_list(value):
            content = [self.describe(item) for item in tuple(value)]
        elif is_set(value):
            content = sorted([self.describe(item) for item in value], key=_sort_key)
        elif isinstance(value, _SCALAR_TYPES):
            content = self.describe(_to_plain_scalar(value))
        elif _is_known_library(kind):
            step = list(value) if kind.__name__ == "deque" else convert_one_step(value, [])
            return self.describe(step)
        else:
            return self._describe_object(value, state)
        return {"content": content, "attributes": state} if state else content

    def _describe_object(self, value: Any, state: Any) -> Any:
        if getattr(type_of(value), "__pydantic_root_model__", False):
            return self.describe(value.root)
        extra: Any = getattr(value, "__pydantic_extra__", None)
        hidden: Any = reduce_hidden_state(value)
        more: dict[str, Any] = {}
        if extra:
            more["extra fields"] = self._describe_pairs(extra.items())
        if hidden is not None:
            more["content"] = self.describe(hidden)
        if hasattr(type_of(value), "__fspath__"):
            more["path"] = self.describe(value.__fspath__())
        if not more:
            return state or f"<{type(value).__name__}>"
        return {"attributes": state, **more}

    def _describe_pairs(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """Return an object, or a list of keys and values if its keys would be ambiguous."""
        described = [(key, self.describe(item)) for key, item in pairs]
        names = {escape_text(key) for key, _ in described if isinstance(key, str)}
        if len(names) == len(described):
            return dict(described)
        return [{"key": self.describe(key), "value": item} for key, item in described]


_HAS_PARTS = object()
_SECRET = "***"
_SCALAR_TYPES = (int, float, str, bytes, bytearray, complex)
_DICT: Any = dict
_LEAF_TYPES = (
    *(("datetime", "datetime"), ("datetime", "date"), ("datetime", "time")),
    *(("datetime", "timedelta"), ("decimal", "Decimal"), ("uuid", "UUID")),
    ("pathlib", "PurePath"),
)


def _describe_leaf(value: Any) -> Any:
    """Return the description of a value without parts; _HAS_PARTS for other values."""
    kind = type_of(value)
    if value is None or kind in (bool, str):
        return value
    if kind in (int, float):
        converted = to_jsonable(value, [])
        return repr(value) if converted is None else converted
    if kind in (bytes, bytearray, memoryview):
        return f"bytes {bytes(value)!r}"
    if kind in (complex, type(...)):
        return repr(value)
    if kind in (dict, list, tuple, set, frozenset):
        return _HAS_PARTS
    if any([callable(getattr(kind, name, None)) for name in ("reveal", "get_secret_value")]):
        return _SECRET
    if is_input(kind) and value.content is not MISSING:
        return _HAS_PARTS
    is_leaf = any([is_loaded_instance(value, *names) for names in _LEAF_TYPES])
    if is_leaf or is_input(kind) or hasattr(kind, "tooli_dry_run"):
        zone = getattr(getattr(value, "tzinfo", None), "key", "")
        fold = "(the second time)" if getattr(value, "fold", 0) else ""
        return " ".join([part for part in (str(to_jsonable(value, [])), zone, fold) if part])
    if is_stream(value):
        return f"<{kind.__name__}>"
    if issubclass(kind, type) or is_importable(value):
        return f"<{global_name(value)}>"
    return _HAS_PARTS


def _to_plain_scalar(value: Any) -> Any:
    """Return the value of a subclass of a scalar type, as that type. Ignores its `__str__`."""
    bases: tuple[Any, ...] = _SCALAR_TYPES
    for base in bases:
        if issubclass(type_of(value), base):
            return str.__str__(value) if base is str else base(value)
    return value


def _shown_state(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, without the internal ones of pydantic."""
    state = instance_state(value)
    shown: dict[str, Any] = {}
    for name, item in state.items():
        plain = name.removeprefix("slot ")
        if not plain.startswith("__pydantic_"):
            shown[name if plain in shown or plain in state else plain] = item
    return shown


def _is_known_library(kind: type) -> bool:
    """True for a class whose text or items show its whole content."""
    package = kind.__module__.partition(".")[0]
    is_model = hasattr(kind, "model_fields") or hasattr(kind, "__dataclass_fields__")
    return not is_model and (package in _LIBRARIES or package in sys.stdlib_module_names)


_LIBRARIES = ("pydantic", "pydantic_core", "numpy", "pandas")


def _sort_key(shown: object) -> bytes:
    return encode(shown, [])


# ------------------------------------------------------------------ long values


def shorten_value(value: Any) -> Any:
    """Return a value of JSON types with long texts and lists cut.

    A cut text keeps its beginning and its end, its length and a digest of the whole text.
    """
    if isinstance(value, str):
        if len(value) <= _HEAD_CHARS + _TAIL_CHARS:
            return value
        note = f" … ({len(value)} characters, SHA-256 {_digest(value)}) … "
        return value[:_HEAD_CHARS] + note + value[-_TAIL_CHARS:]
    if is_list(value):
        items = [shorten_value(item) for item in value[:MAX_SHOWN_ITEMS]]
        return items if len(items) == len(value) else [*items, _omitted_items(value)]
    if not is_object(value):
        return value
    names = list(value)[:MAX_SHOWN_ITEMS]
    shown: dict[str, Any] = {}
    for name in names:
        short_name = shorten_value(name)
        while short_name in shown:
            short_name += "_"
        shown[short_name] = shorten_value(value[name])
    return shown if len(names) == len(value) else {**shown, "…": _omitted_items(value)}


def _omitted_items(value: Any) -> str:
    return f"… and {len(value) - MAX_SHOWN_ITEMS} more; SHA-256 of all: {_digest(value)}"


def _digest(value: object) -> str:
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else encode(value, [])
    return sha256(data).hexdigest()[:_DIGEST_CHARS]


def too_large_error(name: str) -> ToolError:
    """Return the error (E1034) for a call that is too large to be shown to a human."""
    return FormatError(
        f"{name} needs a human's approval, but its arguments, files and plan are too large to be "
        "shown.",
        code="E1034",
        suggestion=Suggestion(
            "retry_with_modified_input", "Put the data into a file and pass the file, or split it."
        ),
    )


def escape_value(value: object) -> Any:
    """Return a JSON value with every string escaped for a terminal."""
    if isinstance(value, str):
        return escape_text(value)
    if is_object(value):
        escaped: dict[str, Any] = {}
        for key, item in value.items():
            name = escape_text(str(key))
            while name in escaped:  # another key that looks the same: show both
                name += "_"
            escaped[name] = escape_value(item)
        return escaped
    return [escape_value(item) for item in value] if is_list(value) else value


# ------------------------------------------------------------------ lines


def format_lines(
    arguments: object,
    plan: object,
    max_lines: int = _MAX_LINES,
    *,
    folder: str | None = None,
    files: object = None,
    is_brief: bool = False,
) -> list[str]:
    """Return the folder, the arguments, the files and the plan as lines that fit the terminal.

    If there are too many lines, the longest arguments are cut, so that each of them stays visible.
    With `is_brief`, each action of the plan is one line.
    """
    width = _terminal_width()
    head = [] if folder is None else _wrap(f"  in the folder {escape_text(folder)}", "  ", width)
    entries = _format_entries(arguments, 1, width)
    if files:
        entries += [["  files:"], *_format_entries(files, 2, width)]
    plan = _remove_repeated_parts(plan)
    if plan:
        steps = (_format_actions(plan, width) if is_brief else None) or _format_entries(
            plan, 2, width
        )
        more = [line for step in steps[_MAX_PLAN_ENTRIES:] for line in step]
        entries += [["  plan:"], *steps[:_MAX_PLAN_ENTRIES], more]
    limit = _entry_limit([len(entry) for entry in entries], max_lines - len(head))
    lines = head
    for entry in entries:
        lines += entry[:limit]
        if len(entry) > limit:
            note = "--dry-run shows the whole plan" if is_brief else f"SHA-256 {_digest(entry)}"
            lines.append(f"    … and {len(entry) - limit} more lines; {note}")
    return lines


def _format_actions(plan: object, width: int) -> list[list[str]] | None:
    """Return a line for each action of a plan; None if the plan contains something else."""
    actions = plan.get("actions") if is_object(plan) and len(plan) == 1 else None
    if not is_list(actions) or not all([is_object(action) for action in actions]):
        return None
    return [
        _wrap(f"    - {_format_action(action)}", "      ", width)
        for action in actions
        if is_object(action)
    ]


def _format_action(action: Mapping[str, object]) -> str:
    """Return an action as text, such as `delete "a.txt"`."""
    verb, target = action.get("action"), action.get("target")
    texts: list[str] = []
    if isinstance(verb, str) and target is not None:
        texts.append(f"{_format_key(verb)[:-1]} {_format_scalar(target)}")
    rest = [(k, v) for k, v in action.items() if not texts or k not in ("action", "target")]
    return ", ".join([*texts, *[f"{_format_key(k)} {_format_scalar(v)}" for k, v in rest]])


def _remove_repeated_parts(plan: object) -> object:
    """Return a plan without the parts that are shown beside it, and without digests of states."""
    if not is_plan(plan) or not is_object(plan):
        return plan
    shown = {name: plan[name] for name in plan if name not in _REPEATED_PLAN_PARTS}
    if is_list(shown.get("actions")):
        shown["actions"] = [
            {name: action[name] for name in action if name != "state"}
            if is_object(action)
            else action
            for action in shown["actions"]
        ]
    return shown


_REPEATED_PLAN_PARTS = ("tool", "arguments", "effects", "basis", "state")


def _entry_limit(sizes: list[int], max_lines: int) -> int:
    """Return the number of lines for each entry, so that all entries together fit."""
    limit = max(sizes, default=0)
    while limit > _MIN_ENTRY_LINES and sum([min(size, limit + 1) for size in sizes]) > max_lines:
        limit -= 1
    return limit


def _format_entries(value: object, depth: int, width: int) -> list[list[str]]:
    """Return the lines of each top-level item of a value."""
    if is_object(value):
        return [_format_pair(_format_key(key), item, depth, width) for key, item in value.items()]
    if is_list(value):
        return [_format_pair("-", item, depth, width) for item in value]
    return [_wrap("  " * depth + _format_scalar(value), "  " * depth, width)]


def _format_pair(head: str, item: object, depth: int, width: int) -> list[str]:
    indent = "  " * min(depth, width // 4)
    if (is_object(item) or is_list(item)) and item:
        lines = _wrap(indent + head, indent, width)
        for entry in _format_entries(item, depth + 1, width):
            lines += entry
        return lines
    return _wrap(f"{indent}{head} {_format_scalar(item)}", indent, width)


def _format_key(key: object) -> str:
    text = str(key)
    is_plain = text.isascii() and text.replace("-", "_").isidentifier()
    return f"{text if is_plain else _format_scalar(text)}:"


def _format_scalar(value: object) -> str:
    return escape_text(encode(value, []).decode())


def _wrap(text: str, indent: str, width: int) -> list[str]:
    """Return a text as lines that a terminal does not wrap. Wide characters need two columns."""
    lines: list[str] = []
    prefix = f"{indent}{_CONTINUATION}"
    line, used = "", 0
    for char in text:
        columns = 1 if char.isascii() else 2
        if used + columns > width:
            lines.append(line)
            line, used = prefix, len(prefix) + 1
        line += char
        used += columns
    return [*lines, line]


def _terminal_width() -> int:
    try:
        return max(_MIN_WIDTH, (os.get_terminal_size(2).columns or 80) - 1)
    except (OSError, ValueError):
        return _DEFAULT_WIDTH
