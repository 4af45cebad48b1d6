"""What is in an input, as the type that is wanted says: text, bytes, objects, rows.

The format is the one that the input's name ends in (.json, .jsonl, .csv, .tsv, .yaml), else the
one that its server tells, else what it begins with: `[` and `{` are JSON, anything else is rows
of CSV where rows are wanted.
"""

from __future__ import annotations

import sys

from tooli.contract.fit import Misfit
from tooli.contract.jsonable import is_list, is_object
from tooli.contract.tool import MISSING

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tooli.errors import FormatError
    from tooli.inputs.source import Input

_ENDINGS = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".yaml": "yaml",
    ".yml": "yaml",
}
SPACE = b"\xef\xbb\xbf \t\r\n"
"""What may stand before the first character that tells something: a mark of UTF-8, too."""
_ITEMWISE = ("Iterator", "Iterable", "Generator")
_GATHERED = (list, tuple, set, frozenset)


def content(source: Input, wanted: Any) -> Any:
    """The content of an input; where an iterator is wanted it is read as that is used."""
    if source.content is not MISSING and not isinstance(source.content, bytes):
        return iter(source.content) if item_of(wanted) is not MISSING else source.content
    bare = getattr(wanted, "__origin__", wanted) if hasattr(wanted, "__metadata__") else wanted
    if is_file(bare):
        return source
    item = item_of(bare)
    if item is not MISSING:
        source.streamed = True
        return _items(source, item)
    if bare is str:
        return _checked(source, wanted, source.read_text())
    if bare is bytes:
        return _checked(source, wanted, source.read_bytes())
    return _checked(source, wanted, _parsed(source, wanted))


def is_file(wanted: Any) -> bool:
    """Whether the input itself is wanted, to be read like a file."""
    pathlib = sys.modules.get("pathlib")
    if wanted is MISSING or getattr(wanted, "__name__", "") == "Input":
        return True
    return pathlib is not None and isinstance(wanted, type) and issubclass(wanted, pathlib.PurePath)


def item_of(wanted: Any) -> Any:
    """What comes one by one, where an iterator is wanted; MISSING where none is."""
    origin = getattr(wanted, "__origin__", wanted)
    if getattr(origin, "__module__", "") == "collections.abc" and origin.__name__ in _ITEMWISE:
        return getattr(wanted, "__args__", (str,))[0]
    return MISSING


# ------------------------------------------------------------------ item by item


def _items(source: Input, item: Any) -> Iterator[Any]:
    from tooli.inputs import rows

    if item is str:
        return rows.lines(source)
    if item is bytes:
        return rows.chunks(source)
    return rows.rows(source, item)


def format_of(source: Input, head: bytes = b"") -> str:
    """The format: by name, by what the server says, by the first bytes; "" where none tells."""
    name = source.source.partition("?")[0].partition("#")[0] if source.is_url else source.source
    dot = name.rfind(".")
    known = _ENDINGS.get(name[dot:].lower()) if dot >= 0 else None
    if known or source.kind:
        return known or source.kind or ""
    first = head.lstrip(SPACE)[:1]
    return {b"[": "json", b"{": "jsonl"}.get(first, "")


# ------------------------------------------------------------------ all of it


def _parsed(source: Input, wanted: Any) -> Any:
    data = source.read_bytes()
    source.keep(data)
    kind = format_of(source, data[:4096])
    gathered = getattr(wanted, "__origin__", wanted) in _GATHERED
    if kind == "yaml":
        return _yaml(source)
    if gathered and kind != "json":
        from tooli.errors import FormatError

        if kind == "jsonl" and not _ends_in_jsonl(source):
            try:  # one object over several lines, or one a line
                return _json(source)
            except FormatError:
                pass
        from tooli.inputs import rows

        return list(rows.rows(source, getattr(wanted, "__args__", (dict,))[0]))
    return _json(source)


def _ends_in_jsonl(source: Input) -> bool:
    return source.kind == "jsonl" or source.source.lower().endswith((".jsonl", ".ndjson"))


def _json(source: Input) -> Any:
    import json

    try:
        return json.loads(source.read_text())
    except json.JSONDecodeError as failure:
        raise malformed(
            source, f"not valid JSON: {failure.msg}", failure.lineno, failure.colno
        ) from None
    except RecursionError:
        raise malformed(source, "it is nested too deeply") from None


def _yaml(source: Input) -> Any:
    try:
        import yaml
    except ImportError:
        from tooli.errors import DependencyError, Suggestion

        raise DependencyError(
            f"{source.source!r} is YAML, and PyYAML is not installed.",
            suggestion=Suggestion("fix", "Run: pip install pyyaml, or give JSON."),
        ) from None
    try:
        return yaml.safe_load(source.read_text())
    except yaml.YAMLError as failure:
        mark: Any = getattr(failure, "problem_mark", None)
        said = getattr(failure, "problem", None) or "it cannot be read"
        line = mark.line + 1 if mark is not None else None
        raise malformed(source, f"not valid YAML: {said}", line) from None


def _checked(source: Input, wanted: Any, value: Any) -> Any:
    """The value, if it is what is wanted; pydantic is asked where that is not plain."""
    if fits_plainly(wanted, value):
        return value
    from tooli.contract.models import validate

    try:
        return validate(wanted, value)
    except Misfit as misfit:
        raise unfit(source, misfit) from None


def fits_plainly(wanted: Any, value: Any) -> bool:
    """Whether a value is of a type that needs no pydantic to see it."""
    typing = sys.modules.get("typing")
    if wanted is object or (typing is not None and wanted is typing.Any):
        return True
    if wanted in (dict, list, str, bytes):
        return type(value) is wanted
    if getattr(wanted, "__origin__", None) is list and is_list(value):
        return all([fits_plainly(wanted.__args__[0], item) for item in value])
    if getattr(wanted, "__origin__", None) is dict and is_object(value):
        key, inner = wanted.__args__
        return key is str and typing is not None and inner is typing.Any
    return False


# ------------------------------------------------------------------ the content itself, given


def given(wanted: Any, value: Any, holder: Input) -> Input:
    """An input whose content was given instead of its name: a value, bytes, an open file."""
    bare = getattr(wanted, "__origin__", wanted) if hasattr(wanted, "__metadata__") else wanted
    if isinstance(value, (bytes, bytearray)):
        holder.content = bytes(value)
        return holder
    if hasattr(value, "read"):
        data: Any = value.read()
        holder.content = data.encode() if isinstance(data, str) else data
        return holder
    item = item_of(bare)
    if is_file(bare) or bare in (str, bytes) or item in (str, bytes):
        if not (is_object(value) and list(value) == ["text"] and isinstance(value["text"], str)):
            raise Misfit('give a path, a URL, or the text itself as {"text": …}')
        holder.content = value["text"].encode()
        return holder
    target = wanted
    if item is not MISSING:
        target = list.__class_getitem__(item)
        value = list(value) if hasattr(value, "__next__") else value
    if not fits_plainly(target, value):
        from tooli.contract.models import validate

        value = validate(target, value)
    holder.content = value
    return holder


def content_schema(wanted: Any) -> dict[str, Any]:
    """JSON Schema of the content, given in place of its name."""
    bare = getattr(wanted, "__origin__", wanted) if hasattr(wanted, "__metadata__") else wanted
    item = item_of(bare)
    if is_file(bare) or bare in (str, bytes) or item in (str, bytes):
        return {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The content itself."}},
            "required": ["text"],
            "additionalProperties": False,
        }
    from tooli.contract.schema import annotation_schema

    return annotation_schema(wanted if item is MISSING else list.__class_getitem__(item))


# ------------------------------------------------------------------ data that is not right


def malformed(
    source: Input, message: str, line: int | None = None, column: int | None = None
) -> FormatError:
    """The error for data that cannot be read, with the place where it cannot."""
    from tooli.errors import FormatError

    where = "stdin" if source.is_stdin else source.shown
    at = f", line {line}" if line is not None else ""
    details: dict[str, Any] = {"source": source.shown}
    if line is not None:
        details["line"] = line
    if column is not None:
        details["column"] = column
    return FormatError(f"{where}{at}: {message}", field=source.field, details=details)


def unfit(source: Input, misfit: Misfit, line: int | None = None) -> FormatError:
    """The error for data that can be read and is not what is wanted."""
    reasons = [(misfit.at, misfit.message), *[(m.at, m.message) for m in misfit.others]]
    listing = [
        {"field": ".".join(map(str, at)), "message": message} if at else {"message": message}
        for at, message in reasons[:20]
    ]
    at, first = reasons[0]
    named = f"{'.'.join(map(str, at))!r}: {first}" if at else first
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    error = malformed(source, named + more, line)
    error.details = {**(error.details or {}), "errors": listing}
    return error
