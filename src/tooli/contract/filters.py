"""The filter language: a small expression over the fields of a record.

    size > 1000 and (owner.name == "ada" or tags contains "new") and not archived

It is read by hand and becomes closures: nothing is evaluated as code, and nothing that a
caller writes can take longer than its own length. Typed against the output schema: a field
that does not exist, or a comparison that can never hold, is refused before the tool runs.
"""

from __future__ import annotations

from tooli.contract.fields import Many, Unfit, choices, kind_of, kinds, read_path, reader
from tooli.contract.predicates import all_of, any_of, at, holds, none_of, test_for
from tooli.contract.record import Record
from tooli.errors import nearest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.fields import FieldPath, Fields
    from tooli.contract.predicates import Test

SYMBOLS = ("==", "!=", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ",")
COMPARISONS = ("==", "=", "!=", "<", "<=", ">", ">=", "in", "contains", "startswith", "endswith")
WORDS = ("and", "or", "not", *COMPARISONS[7:])
CONSTANTS = {"true": True, "false": False, "null": None}
DEEPEST = 50
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Token(Record):
    """One word of an expression: a symbol, a keyword, a field, or a value."""

    kind: str  # "symbol" | "word" | "field" | "value" | "end"
    value: Any
    at: int


def compile_filter(text: str, fields: Fields) -> Test:
    """What says whether a record is kept; raises Unfit."""
    reading = _Reading(text, fields)
    test = reading.either()
    reading.must_end()
    return test


# ------------------------------------------------------------------ words


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter.isspace():
            at += 1
            continue
        if letter in "\"'":
            value, end = _quoted(text, at)
            found.append(Token("value", value, at))
            at = end
            continue
        symbol = next((one for one in SYMBOLS if text.startswith(one, at)), None)
        if symbol is not None:
            found.append(Token("symbol", symbol, at))
            at += len(symbol)
            continue
        end = at
        while end < len(text) and not (text[end].isspace() or text[end] in "\"'()=!<>,[]"):
            end += 1
            while text[end : end + 1] == "[":  # a place in a list belongs to its field
                end = text.find("]", end) + 1 or len(text)
        if end == at:
            raise Unfit(f"The filter has {letter!r} where it cannot stand, at {at + 1}")
        found.append(_word(text[at:end], at))
        at = end
    found.append(Token("end", "the end", len(text)))
    return found


def _quoted(text: str, at: int) -> tuple[str, int]:
    """The text between two quotes, and where it ends; a backslash takes the next as it is."""
    quote, parts, i = text[at], "", at + 1
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text):
            parts += text[i + 1]
            i += 2
        elif text[i] == quote:
            return parts, i + 1
        else:
            parts += text[i]
            i += 1
    raise Unfit(f"The filter has a quote that is never closed, at {at + 1}")


def _word(word: str, at: int) -> Token:
    if word in WORDS:
        return Token("word", word, at)
    if word in CONSTANTS:
        return Token("value", CONSTANTS[word], at)
    if word[0] in "-+0123456789" or (word[0] == "." and word[1:2].isdigit()):
        return Token("value", _number(word), at)
    return Token("field", read_path(word), at)


def _number(word: str) -> int | float:
    try:
        if "_" in word or len(word) > 400:
            raise ValueError
        return int(word) if word.lstrip("-+").isdigit() else float(word)
    except ValueError:
        raise Unfit(f"The filter has {word[:40]!r}, which is no number; quote text") from None


# ------------------------------------------------------------------ expressions


class _Reading:
    """One pass over an expression, from `or` down to a single comparison."""

    def __init__(self, text: str, fields: Fields) -> None:
        self._tokens = _tokens(text)
        self._fields = fields
        self._next = 0
        self._depth = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *values: str) -> Token | None:
        token = self._token
        if token.kind in ("symbol", "word") and token.value in values:
            self._next += 1
            return token
        return None

    def _wrong(self, wanted: str) -> Unfit:
        token = self._token
        found = "it ends" if token.kind == "end" else f"there is {_shown(token)}"
        return Unfit(f"The filter needs {wanted} where {found}, at {token.at + 1}")

    def must_end(self) -> None:
        """Refuse what is left over."""
        if self._token.kind != "end":
            meant = nearest(_shown(self._token).strip("'"), ("and", "or", *COMPARISONS[7:]))
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise Unfit(f"{self._wrong('and, or, or a comparison').message}{hint}", meant)

    def either(self) -> Test:
        """`… or …`"""
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unfit(f"The filter is nested deeper than {DEEPEST}")
        tests = [self._both()]
        while self._take("or"):
            tests.append(self._both())
        self._depth -= 1
        return tests[0] if len(tests) == 1 else any_of(tests)

    def _both(self) -> Test:
        tests = [self._negation()]
        while self._take("and"):
            tests.append(self._negation())
        return tests[0] if len(tests) == 1 else all_of(tests)

    def _negation(self) -> Test:
        negated = False
        while self._take("not"):
            negated = not negated
        if self._take("("):
            test = self.either()
            if not self._take(")"):
                raise self._wrong("a closing parenthesis")
        else:
            test = self._comparison()
        return none_of(test) if negated else test

    def _comparison(self) -> Test:
        left = self._operand()
        negated = self._take("not") is not None
        token = self._take(*COMPARISONS)
        if token is None:
            if negated:
                raise self._wrong("in, contains, startswith or endswith")
            if self._token.kind == "field":
                self.must_end()
            return self._truth(left)
        word = "==" if token.value == "=" else token.value
        if negated and word not in COMPARISONS[7:]:
            raise Unfit(f"The filter has 'not {word}'; write not in front of the comparison")
        right = self._list() if word == "in" else self._operand()
        test = self._compare(left, word, right)
        return none_of(test) if negated else test

    def _operand(self) -> Token:
        token = self._token
        if token.kind not in ("field", "value"):
            raise self._wrong("a field or a value")
        self._next += 1
        return token

    def _list(self) -> Token:
        """The values of `in`: in brackets or parentheses, or a field that holds them."""
        if self._token.kind == "field":
            return self._operand()
        at = self._token.at
        opened = self._take("[", "(")
        if opened is None:
            raise self._wrong("a list, such as ['a', 'b'],")
        closing = "]" if opened.value == "[" else ")"
        values: list[Any] = []
        while not self._take(closing):
            if values and not self._take(","):
                raise self._wrong(f"a comma or {closing}")
            token = self._token
            if token.kind != "value":
                raise self._wrong("a value")
            self._next += 1
            values.append(token.value)
        return Token("value", values, at)

    # -------------------------------------------------------------- comparisons

    def _truth(self, operand: Token) -> Test:
        """A field that stands alone: whether it is true."""
        if operand.kind == "value":
            raise Unfit(f"The filter has {_shown(operand)} alone: compare a field with it")
        possible = kinds(self._fields.at(operand.value))
        if possible is not None and "boolean" not in possible:
            raise Unfit(f"{_shown(operand)} is no boolean: compare it with a value")
        return at(operand.value, lambda value: value is True)

    def _compare(self, left: Token, word: str, right: Token) -> Test:
        if left.kind == "value" and right.kind == "value":
            raise Unfit(f"The filter compares {_shown(left)} with a value: name a field")
        if left.kind == "field" and right.kind == "field":
            return self._two_fields(left.value, word, right.value)
        if left.kind == "field":
            self._check(left, word, right.value)
            return at(left.value, test_for(word, right.value))
        if word == "in":  # 'x' in tags
            self._check(right, "contains", left.value)
            return at(right.value, test_for("contains", left.value))
        if word not in ("==", "!=", *_FLIPPED):
            raise Unfit(f"{word} has its field on the left")
        word = _FLIPPED.get(word, word)
        self._check(right, word, left.value)
        return at(right.value, test_for(word, left.value))

    def _two_fields(self, left: FieldPath, word: str, right: FieldPath) -> Test:
        for path in (left, right):
            self._fields.at(path)
        one, other = reader(left), reader(right)
        if word == "in":
            one, other, word = other, one, "contains"

        def test(record: Any) -> bool:
            value, wanted = one(record), other(record)
            wanted = wanted if wanted.__class__ is Many else (wanted,)
            return any([holds(test_for(word, each), value) for each in wanted])

        return test

    def _check(self, field: Token, word: str, value: Any) -> None:
        """Refuse a comparison that can never hold, by the output schema."""
        nodes = self._fields.at(field.value)
        possible = kinds(nodes)
        shown = _shown(field)
        if word in ("<", "<=", ">", ">="):
            _check_order(shown, word, value, possible)
        elif word in ("==", "!=", "in"):
            for each in value if word == "in" else [value]:
                _check_equal(shown, each, possible, choices(nodes))
        elif word == "contains" and possible is not None and "array" in possible:
            return
        elif not isinstance(value, str):
            if word != "contains" or possible is not None:
                raise Unfit(f"{shown} {word} takes text, not {_told(value)}")
        elif possible is not None and "string" not in possible:
            raise Unfit(f"{shown} is {_one_of(possible)}: {word} can never hold")


def _check_order(shown: str, word: str, value: Any, possible: set[str] | None) -> None:
    kind = kind_of(value)
    if kind not in ("number", "string"):
        raise Unfit(f"{shown} {word} {_told(value)}: only numbers and text have an order")
    if possible is not None and kind not in possible:
        raise Unfit(f"{shown} is {_one_of(possible)}: it can never be {word} {_told(value)}")


def _check_equal(
    shown: str, value: Any, possible: set[str] | None, allowed: list[Any] | None
) -> None:
    if value is None:
        return  # a field that is missing is null
    if possible is not None and kind_of(value) not in possible:
        raise Unfit(f"{shown} is {_one_of(possible)}: it can never be {_told(value)}")
    if allowed is not None and value not in allowed:
        words = [str(one) for one in allowed if one is not None]
        meant = nearest(str(value), words)
        hint = f"did you mean {meant!r}?" if meant else f"it is one of {', '.join(words)}"
        raise Unfit(f"{shown} can never be {_told(value)}; {hint}", meant)


def _shown(token: Token) -> str:
    if token.kind == "field":
        from tooli.contract.fields import write_path

        return repr(write_path(token.value))
    return repr(token.value) if token.kind != "value" else _told(token.value)


def _told(value: Any) -> str:
    if value is None:
        return "null"
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def _one_of(possible: set[str]) -> str:
    words = sorted(possible - {"null"}) or ["null"]
    return " or ".join([f"{'an' if word[0] in 'ao' else 'a'} {word}" for word in words])
