"""Read named statements from `.sql` files: their names, descriptions and parameters.

    -- name: cheap-products
    -- List the products in a price range.
    -- :min float = 0  The lowest price.
    -- :kind book|film?  The kind of product.
    SELECT id, name, price FROM products WHERE price >= :min AND (:kind IS NULL OR kind = :kind);

The lines with `--` after the name are the header. Names and results (`:one`, `:exec`, `^`, `$`,
`!`) are written as for aiosql, PugSQL and sqlc.
"""

from __future__ import annotations

import json
import os
import re

from tooli.core import Record
from tooli.core.timeout_values import parse_timeout
from tooli.core.tool import MISSING
from tooli.errors import DefinitionError
from tooli.providers.sql.sql_lexer import single_statement
from tooli.providers.sql.sql_types import TYPE_NAMES, Parameter
from tooli.schema.described import clean_text
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_FILE_BYTES = 4 << 20
MAX_FILES = 2_000

MANY, ONE, SCALAR = "many", "one", "scalar"
_RESULTS = {
    **dict.fromkeys(("", ":many"), MANY),
    **dict.fromkeys(("^", ":one"), ONE),
    **dict.fromkeys(("$", ":scalar"), SCALAR),
    **dict.fromkeys(("!", "<!", ":exec", ":execrows", ":execresult"), MANY),
    **dict.fromkeys((":affected", ":insert"), MANY),
}
"""What a statement returns, by what may follow its name. A change returns the affected rows."""
_EFFECTS = ("write", "additive", "idempotent")
_KEYWORDS = ("name", "tags", "timeout", "effects", "order by")
_NAME_LINE = re.compile(r"--\s*name\s*:\s*(.*?)\s*$", re.IGNORECASE)
_NAME = re.compile(r"([A-Za-z_][\w.-]*?)(?:\([^)]*\))?\s*(<!|\*!|[\^$!#]|:\w+)?")
_KEYWORD_LINE = re.compile(r"([A-Za-z][a-z]*(?: by)?)\s*:\s*(.*)", re.IGNORECASE)
_PARAMETER_LINE = re.compile(r":([A-Za-z_]\w*)\s*(.*)", re.DOTALL)
_CHOICE = r"(?:'[^']*'|[\w.+-]+)"
_TYPE = re.compile(rf"({_CHOICE}(?:\|{_CHOICE})+|[A-Za-z]\w*)(\[\])?(\?)?(?=\s|=|\Z)")
_DEFAULT = re.compile(r"""\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\[[^\]]*\]|\{[^}]*\}|\S+)""")


class Statement(Record):
    """A named statement, as its author has written it."""

    name: str
    sql: str
    result: str = MANY
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    tags: tuple[str, ...] = ()
    timeout: float | None = None
    effects: tuple[str, ...] = ()
    order_by: tuple[tuple[str, bool], ...] = ()  # each column, and True if it is descending
    group: tuple[str, ...] = ()  # the folders of its file
    missing: str = ""  # the error if there are no rows; empty: no rows are no error

    @property
    def path(self) -> tuple[str, ...]:
        """The groups and the name of the tool."""
        return (*self.group, *self.name.replace("_", "-").split("."))


class StatementProblem(Exception):  # noqa: N818  it is reported, not raised to callers
    """What is wrong with one statement."""


# ------------------------------------------------------------------ files


def sql_files(path: str) -> Iterator[tuple[str, str]]:
    """Yield the `.sql` files at a path, and the name of each below it."""
    if not os.path.isdir(path):
        yield path, os.path.basename(path)
        return
    count = 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted([name for name in folders if name[0] not in "._"])
        for name in sorted(names):
            if name.endswith(".sql") and name[0] not in "._":
                count += 1
                if count > MAX_FILES:
                    raise DefinitionError(f"{path} has more than {MAX_FILES:,} .sql files")
                full = os.path.join(folder, name)
                yield full, os.path.relpath(full, path)


def read_sql_file(path: str) -> str:
    """Return the text of a file; raise StatementProblem if it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as failure:
        raise StatementProblem(f"it cannot be read: {failure.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise StatementProblem(f"it has more than {MAX_FILE_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise StatementProblem(f"line {line}: it is not UTF-8") from None


def parse_sql_file(
    text: str, file_name: str, *, is_postgres: bool
) -> tuple[list[Statement], dict[str, str]]:
    """Return the statements of a file, and what is wrong with those that are left out."""
    group = tuple(os.path.dirname(file_name).replace("_", "-").replace("\\", "/").split("/"))
    group = tuple([part for part in group if part])
    found: dict[str, Statement] = {}
    problems: dict[str, str] = {}
    for line, title, body in _sections(text, os.path.splitext(os.path.basename(file_name))[0]):
        key = f"{file_name}:{line}"
        try:
            statement = parse_statement(title, body, is_postgres=is_postgres)
            if statement.name in found:
                raise StatementProblem("an earlier statement of the file has its name")
            found[statement.name] = statement.replace(group=group)
        except StatementProblem as problem:
            problems[key] = f"{clean_text(title, 100)}: {problem}"
    return list(found.values()), problems


def _sections(text: str, stem: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the title and the text of each statement.

    A file without a name is one statement, with the name of the file.
    """
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _NAME_LINE.match(line.strip())]
    if not starts:
        if text.strip():
            yield 1, stem, text
        return
    before = "\n".join(lines[: starts[0]])
    if single_statement(before, is_postgres=False)[1] != "it has no SQL":
        yield 1, f"the text before line {starts[0] + 1}", before
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        title = _NAME_LINE.match(lines[start].strip())
        yield start + 1, title.group(1) if title else "", "\n".join(lines[start + 1 : end])


# ------------------------------------------------------------------ statements


def parse_statement(title: str, text: str, *, is_postgres: bool) -> Statement:
    """Return the statement of a name and its text; raise StatementProblem if it is not valid."""
    matched = _NAME.fullmatch(title)
    if matched is None:
        raise StatementProblem("this is no name; write letters, digits, -, _ and dots")
    name, suffix = matched.group(1), matched.group(2) or ""
    if suffix not in _RESULTS:
        known = ", ".join([word for word in _RESULTS if word])
        raise StatementProblem(f"{suffix!r} is not supported; use one of {known}")
    header, sql = _split_header(text)
    sql, problem = single_statement(sql, is_postgres=is_postgres)
    if problem:
        raise StatementProblem(problem)
    return Statement(name, sql, _RESULTS[suffix], **_read_header(header))


def _split_header(text: str) -> tuple[list[str], str]:
    """Return the comment lines at the beginning, without `--`, and the rest."""
    lines = text.splitlines()
    header: list[str] = []
    for count, line in enumerate(lines):
        stripped = line.strip()
        if stripped and not stripped.startswith("--"):
            return header, "\n".join(lines[count:])
        if stripped:
            header.append(stripped.lstrip("-").strip())
    return header, ""


def _read_header(lines: list[str]) -> Mapping[str, Any]:
    """Return the fields of a statement that its header sets."""
    description: list[str] = []
    parameters: dict[str, Parameter] = {}
    fields: dict[str, Any] = {}
    for line in lines:
        keyword = _KEYWORD_LINE.fullmatch(line)
        word = keyword.group(1).lower() if keyword else ""
        if line.startswith(":"):
            parameter = read_parameter(line)
            if parameter.name in parameters:
                raise StatementProblem(f"the parameter {parameter.name} is described twice")
            parameters[parameter.name] = parameter
        elif keyword and word in _KEYWORDS:
            fields[word.replace(" ", "_")] = _read_keyword(word, keyword.group(2))
        elif keyword and not description and did_you_mean(word, _KEYWORDS):
            raise StatementProblem(f"unknown line '{word}:'{did_you_mean(word, _KEYWORDS)}")
        else:
            description.append(line)
    text = "\n".join(description).strip()
    return {**fields, "description": text, "parameters": tuple(parameters.values())}


def _read_keyword(word: str, text: str) -> Any:
    values = tuple([part.strip() for part in text.split(",") if part.strip()])
    if not values:
        raise StatementProblem(f"'{word}:' has no value")
    if word == "timeout":
        seconds = parse_timeout(text.removesuffix("s").strip())
        if seconds is None:
            raise StatementProblem(f"'timeout: {text}' must be a number of seconds")
        return seconds
    if word == "effects":
        for value in values:
            if value not in _EFFECTS:
                raise StatementProblem(f"'effects: {value}' must be one of {', '.join(_EFFECTS)}")
    if word == "order by":
        return tuple([_read_order(value) for value in values])
    return values


def _read_order(text: str) -> tuple[str, bool]:
    column, _, direction = text.partition(" ")
    direction = direction.strip().lower()
    if direction not in ("", "asc", "desc"):
        raise StatementProblem(f"'order by: {text}' must be a column, and asc or desc")
    return column.strip('"'), direction == "desc"


def read_parameter(line: str) -> Parameter:
    """Return the parameter of a line such as `:min float = 0  The lowest price.`"""
    matched = _PARAMETER_LINE.fullmatch(line)
    if matched is None:
        raise StatementProblem(f"{line[:60]!r} must be ':name type', such as ':id int'")
    name, rest = matched.groups()
    kind = _TYPE.match(rest)
    if kind is None:
        raise StatementProblem(f"the parameter {name} has no type, such as ':{name} int'")
    word, is_list, is_optional = kind.group(1), bool(kind.group(2)), bool(kind.group(3))
    choices = tuple([part.strip("'") for part in re.findall(_CHOICE, word)]) if "|" in word else ()
    if not choices and word.lower() not in TYPE_NAMES:
        hint = did_you_mean(word.lower(), TYPE_NAMES) or f"; use one of {', '.join(TYPE_NAMES)}"
        raise StatementProblem(f"the parameter {name} has the unknown type {word!r}{hint}")
    rest = rest[kind.end() :]
    found = _DEFAULT.match(rest)
    parameter = Parameter(
        name,
        "text" if choices else TYPE_NAMES[word.lower()],
        is_list=is_list,
        choices=choices,
        nullable=is_optional,
        description=clean_text(rest[found.end() if found else 0 :].strip(), 1_000),
    )
    return _with_default(parameter, found.group(1)) if found else parameter


def _with_default(parameter: Parameter, text: str) -> Parameter:
    """Return a parameter with the default that a header names."""
    value: Any = text
    if text[:1] == "'":
        value = text[1:-1].replace("''", "'")
    elif text.lower() == "null":
        return parameter.replace(nullable=True, default=MISSING)
    else:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
    if parameter.type in ("text", "decimal") and not isinstance(value, (str, list)):
        value = text  # 1.0 is a text as well
    try:
        parameter.convert(value)
    except ValueError as failure:
        problem = f"the default of {parameter.name} {failure}, not {text[:60]}"
        raise StatementProblem(problem) from None
    return parameter.replace(default=value)
