"""The limits of the size of an answer: in bytes, in characters or in tokens.

An answer may have several limits, such as `--max-tokens` of the command and the limit of the agent
that reads it. It has to fit all of them.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.text.token_estimate import estimate_tokens

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core.output_limits import OutputLimit
    from tooli.records.call_options import ResultOptions

CALLER_LIMIT = "caller"
"""The limit of the agent that reads the answer, in `meta.truncated.by`."""

_MARGINS = {"bytes": 40, "tokens": 48}
"""Added to a limit that is suggested: its own digits and another cursor may need more."""
_NOTES_SIZE, _MAX_LINE_SIZE = 1_000, 2_500
"""Room for what stderr says of an incomplete result, and for the command line in it."""
_MAX_BYTES_PER_UNIT = {"bytes": 1, "characters": 3, "tokens": 16}
"""One character of UTF-16 has up to 3 bytes of UTF-8. An estimated token has at most 16."""


class SizeLimit(Record):
    """A maximum size. `name` is the option that sets it, or `caller`."""

    amount: int
    unit: str
    name: str

    @property
    def max_bytes(self) -> int:
        """A number of bytes that an answer within the limit does not exceed."""
        return self.amount * _MAX_BYTES_PER_UNIT[self.unit]

    @property
    def option(self) -> str:
        """The option that raises the limit."""
        return "max-bytes" if self.name == CALLER_LIMIT else self.name

    def measure(self, data: bytes) -> int:
        """Return the size of UTF-8 text in the unit of the limit."""
        if self.unit == "bytes":
            return len(data)
        text = data.decode("utf-8", "surrogatepass")
        if self.unit == "tokens":
            return estimate_tokens(text)
        return len(text) if data.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

    def excess(self, data: bytes) -> int:
        """Return by how much a text exceeds the limit; 0 or less if it fits."""
        # A text has at most as many characters and tokens as bytes.
        return 0 if len(data) <= self.amount else self.measure(data) - self.amount

    def required(self, data: bytes, *, exact: bool = False) -> int:
        """Return the value of `option` that a text of this size needs.

        Without `exact`, it is enough for an answer with another cursor and its own value as well.
        """
        if self.option == "max-bytes":
            return len(data) + (0 if exact else _MARGINS["bytes"])
        return self.measure(data) + (0 if exact else _MARGINS["tokens"])


def size_limits(
    options: ResultOptions, *, has_notes_on_stderr: bool = False
) -> tuple[SizeLimit, ...]:
    """Return the limits that the result options of a call set.

    In the output modes without an envelope, the agent shows stdout together with stderr, which has
    the warnings and the command line for the rest of the result.
    """
    limits: list[SizeLimit] = []
    if options.max_bytes:
        limits.append(SizeLimit(options.max_bytes, "bytes", "max-bytes"))
    if options.max_tokens:
        limits.append(SizeLimit(options.max_tokens, "tokens", "max-tokens"))
    if options.caller_limit is not None:
        limit = caller_size_limit(options.caller_limit)
        if has_notes_on_stderr:
            words = sum([len(word.encode("utf-8", "replace")) + 3 for word in options.argv or ()])
            limit = limit.replace(amount=limit.amount - _NOTES_SIZE - min(words, _MAX_LINE_SIZE))
        limits.append(limit)
    return tuple(limits)


def caller_size_limit(limit: OutputLimit) -> SizeLimit:
    """Return the limit of the agent that reads the answer."""
    return SizeLimit(limit.amount, limit.unit, CALLER_LIMIT)


def exceeded_limit(limits: Iterable[SizeLimit], data: bytes) -> tuple[SizeLimit, int] | None:
    """Return the first limit that a text exceeds, and by how much; None if it fits all of them."""
    for limit in limits:
        excess = limit.excess(data)
        if excess > 0:
            return limit, excess
    return None
