"""The filter language: expressions over the fields of a record.

    size > 1000 and (owner.name == "ada" or tags contains "new") and not archived

A hand-written parser compiles an expression to closures. Nothing is evaluated as code, and the
parsing time is linear in the length of the expression. The expression is checked against the output
schema: an unknown field, or a comparison that can never be true, is an error before the tool runs.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.tool import quote
from tooli.records.fields import (
    ExpressionError,
    MultipleValues,
    allowed_values,
    build_getter,
    check_length,
    format_path,
    json_type_of,
    json_types,
    parse_path,
)
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from tooli.records.fields import FieldPath, RecordFields

    Predicate: TypeAlias = Callable[[Any], bool]

SYMBOLS = ("==", "!=", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ",")
WORD_COMPARISONS = ("in", "contains", "startswith", "endswith")
COMPARISONS = ("==", "=", "!=", "<", "<=", ">", ">=", *WORD_COMPARISONS)
KEYWORDS = ("and", "or", "not", *WORD_COMPARISONS)
CONSTANTS = {"true": True, "false": False, "null": None}
MAX_NESTING = 50
MAX_COMPARISONS = 100
_MIRRORED_OPERATORS = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class FilterToken(Record):
    """One token of an expression: a symbol, a keyword, a field, or a value."""

    kind: str  # "symbol" | "keyword" | "field" | "value" | "end"
    value: Any
    position: int


def compile_filter(text: str, fields: RecordFields) -> Predicate:
    """Return a predicate that is true for matching records. Raises ExpressionError."""
    check_length(text, "filter")
    parser = _FilterParser(text, fields)
    predicate = parser.parse_or()
    parser.expect_end()
    return predicate


# ------------------------------------------------------------------ tokens


def _tokenize(text: str) -> list[FilterToken]:
    found: list[FilterToken] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char.isspace():
            position += 1
            continue
        if char in "\"'":
            value, end = _read_quoted(text, position)
            found.append(FilterToken("value", value, position))
            position = end
            continue
        symbol = next((symbol for symbol in SYMBOLS if text.startswith(symbol, position)), None)
        if symbol is not None:
            found.append(FilterToken("symbol", symbol, position))
            position += len(symbol)
            continue
        end = find_word_end(text, position)
        if end == position:
            raise ExpressionError(f"Unexpected {char!r} in the filter, at position {position + 1}")
        found.append(_unquoted_token(text[position:end], position))
        position = end
    found.append(FilterToken("end", "the end", len(text)))
    return found


def find_word_end(text: str, start: int) -> int:
    """Return the end of a word: a field, a number or a keyword."""
    end = start
    while end < len(text) and not (text[end].isspace() or text[end] in "\"'()=!<>,[]"):
        end += 1
        while text[end : end + 1] == "[":  # an index belongs to its field
            end = text.find("]", end) + 1 or len(text)
    return end


def _read_quoted(text: str, start: int) -> tuple[str, int]:
    """Return the text between two quotes and its end; a backslash escapes a character."""
    quote, parts, i = text[start], "", start + 1
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text):
            parts += text[i + 1]
            i += 2
        elif text[i] == quote:
            return parts, i + 1
        else:
            parts += text[i]
            i += 1
    raise ExpressionError(f"The filter has an unclosed quote, at position {start + 1}")


def _unquoted_token(text: str, position: int) -> FilterToken:
    if text in KEYWORDS:
        return FilterToken("keyword", text, position)
    if text in CONSTANTS:
        return FilterToken("value", CONSTANTS[text], position)
    if text[0] in "-+0123456789" or (text[0] == "." and text[1:2].isdigit()):
        return FilterToken("value", _parse_number(text), position)
    return FilterToken("field", parse_path(text), position)


def _parse_number(text: str) -> int | float:
    try:
        if "_" in text or len(text) > 400:
            raise ValueError
        return int(text) if text.lstrip("-+").isdigit() else float(text)
    except ValueError:
        raise ExpressionError(
            f"{text[:40]!r} in the filter is not a number; put text in quotes"
        ) from None


# ------------------------------------------------------------------ expressions


class _FilterParser:
    """Recursive descent parser: `or`, `and`, `not`, comparisons."""

    def __init__(self, text: str, fields: RecordFields) -> None:
        self._tokens = _tokenize(text)
        self._fields = fields
        self._position = 0
        self._depth = 0
        self._comparison_count = 0

    @property
    def _token(self) -> FilterToken:
        return self._tokens[self._position]

    def _accept(self, *values: str) -> FilterToken | None:
        token = self._token
        if token.kind in ("symbol", "keyword") and token.value in values:
            self._position += 1
            return token
        return None

    def _syntax_error(self, expected: str) -> ExpressionError:
        token = self._token
        found = "the end" if token.kind == "end" else _format_token(token)
        return ExpressionError(
            f"The filter needs {expected} instead of {found}, at position {token.position + 1}"
        )

    def expect_end(self) -> None:
        """Raise an error if tokens are left."""
        if self._token.kind != "end":
            word = _format_token(self._token).strip("'")
            hint = did_you_mean(word, ("and", "or", *WORD_COMPARISONS))
            raise ExpressionError(f"{self._syntax_error('and, or, or a comparison')}{hint}")

    def parse_or(self) -> Predicate:
        """Parse an expression with `or`."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ExpressionError(f"The filter is nested more than {MAX_NESTING} levels deep")
        tests = [self._parse_and()]
        while self._accept("or"):
            tests.append(self._parse_and())
        self._depth -= 1
        return tests[0] if len(tests) == 1 else _any_of(tests)

    def _parse_and(self) -> Predicate:
        tests = [self._parse_not()]
        while self._accept("and"):
            tests.append(self._parse_not())
        return tests[0] if len(tests) == 1 else _all_of(tests)

    def _parse_not(self) -> Predicate:
        negated = False
        while self._accept("not"):
            negated = not negated
        if self._accept("("):
            test = self.parse_or()
            if not self._accept(")"):
                raise self._syntax_error("a closing parenthesis")
        else:
            test = self._parse_comparison()
        return _negate(test) if negated else test

    def _parse_comparison(self) -> Predicate:
        self._comparison_count += 1
        if self._comparison_count > MAX_COMPARISONS:
            raise ExpressionError(
                f"The filter has more than {MAX_COMPARISONS} comparisons; compare a field with "
                "many values by 'in [...]'"
            )
        left = self._parse_operand()
        negated = self._accept("not") is not None
        token = self._accept(*COMPARISONS)
        if token is None:
            if negated:
                raise self._syntax_error("in, contains, startswith or endswith")
            if self._token.kind == "field":
                self.expect_end()
            return self._boolean_predicate(left)
        operator = "==" if token.value == "=" else token.value
        if negated and operator not in WORD_COMPARISONS:
            raise ExpressionError(
                f"The filter has 'not {operator}'; write 'not' before the comparison"
            )
        right = self._parse_list() if operator == "in" else self._parse_operand()
        test = self._build_comparison(left, operator, right)
        return _negate(test) if negated else test

    def _parse_operand(self) -> FilterToken:
        token = self._token
        if token.kind not in ("field", "value"):
            raise self._syntax_error("a field or a value")
        self._position += 1
        return token

    def _parse_list(self) -> FilterToken:
        """Parse the values of `in`: in brackets or parentheses, or a field that contains them."""
        if self._token.kind == "field":
            return self._parse_operand()
        position = self._token.position
        opened = self._accept("[", "(")
        if opened is None:
            raise self._syntax_error("a list, such as ['a', 'b'],")
        closing = "]" if opened.value == "[" else ")"
        values: list[Any] = []
        while not self._accept(closing):
            if values and not self._accept(","):
                raise self._syntax_error(f"a comma or {closing}")
            token = self._token
            if token.kind != "value":
                raise self._syntax_error("a value")
            self._position += 1
            values.append(token.value)
        return FilterToken("value", values, position)

    # -------------------------------------------------------------- comparisons

    def _boolean_predicate(self, operand: FilterToken) -> Predicate:
        """Return a predicate for a field without a comparison: true if the field is true."""
        if operand.kind == "value":
            raise ExpressionError(
                f"The filter has {_format_token(operand)} without a field to compare it with"
            )
        possible = json_types(self._fields.schemas_at(operand.value))
        if possible is not None and "boolean" not in possible:
            raise ExpressionError(
                f"{_format_token(operand)} is not a boolean: compare it with a value"
            )
        return _at_path(operand.value, lambda value: value is True)

    def _build_comparison(self, left: FilterToken, operator: str, right: FilterToken) -> Predicate:
        if left.kind == "value" and right.kind == "value":
            raise ExpressionError(
                f"The filter compares {_format_token(left)} with another value: use a field"
            )
        if left.kind == "field" and right.kind == "field":
            return self._compare_fields(left.value, operator, right.value)
        if left.kind == "field":
            self._check_comparison(left, operator, right.value)
            return _at_path(left.value, _build_predicate(operator, right.value))
        if operator == "in":  # 'x' in tags
            self._check_comparison(right, "contains", left.value)
            return _at_path(right.value, _build_predicate("contains", left.value))
        if operator not in ("==", "!=", *_MIRRORED_OPERATORS):
            raise ExpressionError(f"{operator} needs its field on the left")
        operator = _MIRRORED_OPERATORS.get(operator, operator)
        self._check_comparison(right, operator, left.value)
        return _at_path(right.value, _build_predicate(operator, left.value))

    def _compare_fields(self, left: FieldPath, operator: str, right: FieldPath) -> Predicate:
        possible = json_types(self._fields.schemas_at(left))
        try:
            self._fields.schemas_at(right)
        except ExpressionError as error:
            name, text = format_path(left), format_path(right)
            advice = f"text needs quotes: {name} {operator} '{text}'"
            if possible is not None and possible.isdisjoint(("string", "array")):
                advice = f"{quote(name)} is {_format_types(possible)}: compare it with a value"
            raise ExpressionError(f"{error}; {advice}") from None
        get_left, get_right = build_getter(left), build_getter(right)
        if operator == "in":
            get_left, get_right, operator = get_right, get_left, "contains"

        def test(record: object) -> bool:
            value, expected = get_left(record), get_right(record)
            expected = expected if expected.__class__ is MultipleValues else (expected,)
            return any([_matches(_build_predicate(operator, each), value) for each in expected])

        return test

    def _check_comparison(self, field: FilterToken, operator: str, value: Any) -> None:
        """Raise an error if the operator or the output schema excludes a compared value."""
        if self._fields.has_null_fields and operator in ("==", "!=") and _is_null(value):
            return  # a missing field is null
        nodes = self._fields.schemas_at(field.value)
        possible = json_types(nodes)
        field_text = _format_token(field)
        if operator in ("<", "<=", ">", ">="):
            _check_order(field_text, operator, value, possible)
        elif operator in ("==", "!=", "in"):
            for each in value if operator == "in" else [value]:
                _check_equal(field_text, each, possible, allowed_values(nodes))
        elif operator == "contains" and possible is not None and "array" in possible:
            return
        elif not isinstance(value, str):
            if operator != "contains" or possible is not None:
                raise ExpressionError(
                    f"{field_text} {operator} needs text, not {_format_value(value)}"
                )
        elif possible is not None and "string" not in possible:
            raise ExpressionError(
                f"{field_text} is {_format_types(possible)}: {operator} can never be true"
            )


def _is_null(value: object) -> bool:
    return value is None


def _check_order(field_text: str, operator: str, value: object, possible: set[str] | None) -> None:
    kind = json_type_of(value)
    if kind not in ("number", "string"):
        raise ExpressionError(
            f"{field_text} {operator} {_format_value(value)}: only numbers and text can be ordered"
        )
    if possible is not None and kind not in possible:
        wanted = f"{operator} {_format_value(value)}"
        raise ExpressionError(
            f"{field_text} is {_format_types(possible)}: it can never be {wanted}"
        )


def _check_equal(
    field_text: str, value: object, possible: set[str] | None, allowed: list[object] | None
) -> None:
    if value is None:
        return  # a missing field is null
    if possible is not None and json_type_of(value) not in possible:
        raise ExpressionError(
            f"{field_text} is {_format_types(possible)}: it can never be {_format_value(value)}"
        )
    if allowed is not None and value not in allowed:
        labels = [str(choice) for choice in allowed if choice is not None]
        hint = did_you_mean(str(value), labels) or f"; it is one of {', '.join(labels)}"
        raise ExpressionError(f"{field_text} can never be {_format_value(value)}{hint}")


def _format_token(token: FilterToken) -> str:
    if token.kind == "field":
        return quote(format_path(token.value))
    return repr(token.value) if token.kind != "value" else _format_value(token.value)


def _format_value(value: object) -> str:
    if value is None:
        return "null"
    return repr(value).lower() if isinstance(value, bool) else quote(value)


def _format_types(possible: set[str]) -> str:
    type_names = sorted(possible - {"null"}) or ["null"]
    return " or ".join(
        [f"{'an' if type_name[0] in 'ao' else 'a'} {type_name}" for type_name in type_names]
    )


# ------------------------------------------------------------------ predicates
#
# Closures over a record. They accept any value and never raise.


def _any_of(tests: list[Predicate]) -> Predicate:
    """Return a predicate that is true if at least one test is true."""
    if len(tests) == 2:
        first, second = tests
        return lambda record: first(record) or second(record)
    return lambda record: any([test(record) for test in tests])


def _all_of(tests: list[Predicate]) -> Predicate:
    """Return a predicate that is true if all tests are true."""
    if len(tests) == 2:
        first, second = tests
        return lambda record: first(record) and second(record)
    return lambda record: all([test(record) for test in tests])


def _negate(test: Predicate) -> Predicate:
    """Return a predicate that is true if the test is false."""
    return lambda record: not test(record)


def _at_path(path: FieldPath, test: Predicate) -> Predicate:
    """Return a predicate for the value at a path.

    If the path passes through a list, the predicate is true if one item matches.
    """
    get_value = build_getter(path)
    if len(path) < 2:
        return lambda record: test(get_value(record))
    return lambda record: _matches(test, get_value(record))


def _matches(test: Predicate, value: Any) -> bool:
    """True if a test is true for a value, or for one of several values."""
    return any(map(test, value)) if value.__class__ is MultipleValues else test(value)


def _build_predicate(operator: str, expected: Any) -> Predicate:
    """Return the test of a comparison. Values of other types fail it, except with `!=`."""
    if operator == "==":
        return _equals(expected)
    if operator == "!=":
        return _negate(_equals(expected))
    if operator == "in":
        return _any_of([_equals(each) for each in expected] or [lambda _: False])
    if operator == "contains":
        return _contains(expected)
    if operator in ("startswith", "endswith"):
        has_affix: Any = str.startswith if operator == "startswith" else str.endswith
        return lambda value: value.__class__ is str and has_affix(value, expected)
    return _compares(operator, expected)


def _equals(expected: object) -> Predicate:
    kind = json_type_of(expected)
    if kind in ("null", "boolean"):
        return lambda value: value is expected
    if kind == "number":
        return lambda value: value == expected and value.__class__ is not bool
    return lambda value: value == expected


def _contains(expected: Any) -> Predicate:
    is_equal = _equals(expected)
    is_text = isinstance(expected, str)

    def test(value: Any) -> bool:
        if value.__class__ is str:
            return is_text and expected in value
        return value.__class__ is list and any(map(is_equal, value))

    return test


def _compares(operator: str, expected: object) -> Predicate:
    classes: tuple[type, ...] = (str,) if isinstance(expected, str) else (int, float)
    if json_type_of(expected) not in ("string", "number"):
        return lambda _: False
    if operator == "<":
        return lambda value: value.__class__ in classes and value < expected
    if operator == "<=":
        return lambda value: value.__class__ in classes and value <= expected
    if operator == ">":
        return lambda value: value.__class__ in classes and value > expected
    return lambda value: value.__class__ in classes and value >= expected
