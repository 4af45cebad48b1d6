"""`Prefer: handling=strict` (RFC 7240): a body is held to its published schema, to the letter.

body ─▶ the validator of the tool's schema ─▶ problems ─▶ the call, which is refused with them

Without it, as through every door, a tool takes what can be read without doubt as what it
wants: "7" for 7, a list with repetitions for a set. Who tests a contract, or a client, wants to
hear of that instead. jsonschema, which judges it, is loaded by the first request that asks.
"""

from __future__ import annotations

import re
from datetime import date, time
from itertools import islice

from tooli.call.model import Problem
from tooli.contract.jsonable import is_list, is_object
from tooli.contract.schema import input_schema
from tooli.errors import DependencyError, Suggestion
from tooli.surfaces.http.exchange import Refused
from tooli.surfaces.serving import is_installed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping
    from typing import Any

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    from tooli.contract.tool import Tool

APPLIED = (b"preference-applied", b"handling=strict")
_MOST, _LONGEST = 100, 200  # problems of a body, and characters of a message


def wants_strict(prefer: bytes) -> bool:
    """Whether a header asks for it; of several preferences of one name the first counts."""
    for preference in _split(prefer.decode("latin-1"), ","):
        name, _, value = next(_split(preference, ";"), "").partition("=")
        if name.strip().lower() == "handling":
            return value.strip().strip('"').lower() == "strict"
    return False


def _split(text: str, mark: str) -> Iterator[str]:
    """The parts between marks; what stands in quotes is no mark."""
    for found in re.finditer(rf'(?:[^{mark}"]|"(?:[^"\\]|\\.)*"?)+', text):
        yield found.group()


class Letter:
    """What tools' schemas say, to the letter; what judges it is made once for each tool."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Tool, Validator]] = {}

    def problems(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What is wrong with a body, a hundred things at most; for a thread, it may take long."""
        validator = self._validator(tool)
        try:
            errors = list(islice(validator.iter_errors(arguments), _MOST))
        except RecursionError:
            return (Problem("E1003", None, "The body is nested too deeply"),)
        return tuple(dict.fromkeys(islice(_told(errors), _MOST)))

    def _validator(self, tool: Tool) -> Validator:
        kept = self._made.get(id(tool))
        if kept is None:  # the tool is kept, so its id stays its own
            kept = self._made[id(tool)] = (tool, _make(input_schema(tool)))
        return kept[1]


def _make(schema: dict[str, Any]) -> Validator:
    if not is_installed("jsonschema"):
        advice = "Run: pip install 'tooli[http]', or leave 'Prefer: handling=strict' out."
        raise Refused(
            DependencyError(
                "Strict handling needs jsonschema, which is not installed.",
                suggestion=Suggestion("fix", advice),
            )
        )
    from jsonschema import Draft202012Validator, FormatChecker, validators
    from referencing.jsonschema import EMPTY_REGISTRY

    formats = FormatChecker(formats=("email", "ipv4", "ipv6", "regex"))
    for name, is_valid in FORMATS.items():
        formats.checks(name)(_of_text(is_valid))
    Draft202012Validator.check_schema(schema)
    extend: Any = getattr(validators, "extend")  # noqa: B009  its types are not told
    own = {"anyOf": _any_of, "oneOf": _one_of, "uniqueItems": _unique}
    judge = extend(Draft202012Validator, own)
    return judge(schema, format_checker=formats, registry=EMPTY_REGISTRY)  # nothing is fetched


# ------------------------------------------------------------------ what is wrong, in our words


def _told(errors: list[ValidationError]) -> Iterator[Problem]:
    """What there is to say about errors: of a value of another type, nothing but that."""
    other = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    for error in errors:
        if error.validator == "type" or tuple(error.absolute_path) not in other:
            yield from _problems(error)


def _problems(error: Any) -> Iterator[Problem]:
    """An error as bind tells it: by name at the top, as a value that does not fit below."""
    at = [str(step) for step in error.absolute_path]
    inner = _meant(error.context) if error.validator in ("anyOf", "oneOf") else None
    if inner:
        yield from _told(inner)
    elif error.validator == "required":
        for name in [name for name in error.validator_value if name not in error.instance]:
            yield _named("E1002", [*at, name], "is required")
    elif error.validator == "additionalProperties" and error.validator_value is False:
        for name in _surplus(error):
            yield _named("E1004", [*at, name], "is not among what is taken here")
    else:
        field = ".".join(at) or None
        secret = is_object(error.schema) and error.schema.get("writeOnly")
        said = "it is not the text that a secret is" if secret else error.message
        said = said if len(said) <= _LONGEST else f"{said[: _LONGEST // 2]}…{said[-80:]}"
        yield Problem("E1003", field, f"{field!r}: {said}" if field else said)


def _named(code: str, at: list[str], what: str) -> Problem:
    field = ".".join(at)
    return Problem(code if len(at) == 1 else "E1003", field, f"{field!r} {what}")


def _surplus(error: Any) -> list[str]:
    """The names in an object that its schema has no place for."""
    known: Mapping[str, Any] = error.schema.get("properties", {})
    patterns: Mapping[str, Any] = error.schema.get("patternProperties", {})
    return [
        name
        for name in error.instance
        if name not in known and not any([re.search(pattern, name) for pattern in patterns])
    ]


def _meant(context: list[ValidationError]) -> list[ValidationError] | None:
    """The errors of the one alternative that can be meant: beside `null`, there is no other."""
    branches: dict[Any, list[ValidationError]] = {}
    for error in context:
        branches.setdefault(error.relative_schema_path[0], []).append(error)
    left = [
        errors
        for errors in branches.values()
        if not (errors[0].validator == "type" and errors[0].validator_value == "null")
    ]
    return left[0] if len(left) == 1 else None


# ------------------------------------------------------------------ keywords and formats
#
# jsonschema's own gather every error of every alternative, and compare each item with each: a
# small body could keep a server busy for long.


def _any_of(validator: Any, branches: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    """`anyOf`, which gathers no more errors than are told."""
    from jsonschema import ValidationError

    context: list[ValidationError] = []
    for index, branch in enumerate(branches):
        found: Iterator[ValidationError] = validator.descend(value, branch, schema_path=index)
        errors = list(islice(found, _MOST))
        if not errors:
            return
        context += errors
    yield ValidationError("none of the alternatives fits", context=context)


def _one_of(validator: Any, branches: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """`oneOf`: any of them, and no other one."""
    from jsonschema import ValidationError

    fitting = [branch for branch in branches if validator.evolve(schema=branch).is_valid(value)]
    if not fitting:
        yield from _any_of(validator, branches, value, schema)
    elif len(fitting) > 1:
        yield ValidationError("more than one of the alternatives fits")


def _unique(validator: Any, wanted: Any, items: Any, _: Any) -> Iterator[ValidationError]:
    """`uniqueItems`, in the time that it takes to look at each once."""
    if wanted and is_list(items) and len({_essence(item) for item in items}) < len(items):
        from jsonschema import ValidationError

        yield ValidationError("the items are not all different")


def _essence(value: Any) -> Hashable:
    """What two values have in common that are one to JSON: 1 is 1.0, and true is not."""
    if is_list(value):
        return ("list", *[_essence(item) for item in value])
    if is_object(value):
        return frozenset([(name, _essence(item)) for name, item in value.items()])
    return (bool, value) if type(value) is bool else value


def _of_text(is_valid: Callable[[str], bool]) -> Callable[[object], bool]:
    """A check that has nothing to say about what is no text: that is for `type`."""
    return lambda value: not isinstance(value, str) or is_valid(value)


_DAY = r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_CLOCK = r"(?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?"
_ZONE = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"


def _like(pattern: str) -> Callable[[str], bool]:
    """A check by a pattern for all of the text; a day and a time in it must exist as well."""
    whole = re.compile(pattern)

    def check(text: str) -> bool:
        found = whole.fullmatch(text)
        if found is None:
            return False
        parts = found.groupdict()
        try:
            if "day" in parts:
                date.fromisoformat(parts["day"])
            if "clock" in parts:
                time.fromisoformat(parts["clock"])
        except ValueError:
            return False
        return True

    return check


_NUMBERED = "(?:[0-9]+{})?"
FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _like(_DAY),
    "time": _like(_CLOCK + _ZONE),
    "date-time": _like(f"{_DAY}[Tt]{_CLOCK}{_ZONE}"),
    "duration": _like(
        "P(?=[0-9T])(?:[0-9]+W|"
        + "".join([_NUMBERED.format(unit) for unit in "YMD"])
        + "(?:T(?=[0-9])"
        + "".join([_NUMBERED.format(unit) for unit in ("H", "M", r"(?:\.[0-9]+)?S")])
        + ")?)"
    ),
    "uuid": _like(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}
"""The formats that schemas of ours name, by RFC 3339 and RFC 9562; jsonschema itself would want
more packages for them. A duration may have a part of a second: answers of ours have."""
