"""Select the records of one page and make the cursor of the next page.

A stream is closed after the last record of the page, so the tool produces no more than necessary.
A cursor contains the number of returned records and the digests of the last ones. So the next page
starts after the last returned record, even if earlier records were inserted or deleted meanwhile.
If that record is not found, the page has a warning.

    "c" + base64url( binding │ digests of the last records │ position │ source cursor │ signature )

A cursor contains no secrets and can be used any number of times. It is valid only for a call with
the same tool and arguments.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.call_fingerprint import canonical_bytes, digest, make_keyed_digest, requested_id
from tooli.errors import InputError, Suggestion
from tooli.records.record_flow import RecordProcessor, as_records
from tooli.storage.signing import decode_token, encode_token, get_cursor_key, is_public_key
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.call import Call
    from tooli.records.record_flow import Push, RecordFlow

SEARCH_DISTANCE = 500
"""Number of records before and after the position of a cursor that are searched in a stream.

Lists are searched completely.
"""
CONTEXT_CHARS = 64
"""The digest of this many characters before a position in a text identifies the position."""
RECORD_DIGEST_BYTES = 5
MAX_RECORD_DIGESTS = 3
"""Maximum number of record digests in a cursor."""
_BINDING_BYTES, _POSITION_BYTES, _SIGNATURE_BYTES = 6, 5, 9


# ------------------------------------------------------------------ cursors


class CursorPosition(Record):
    """The content of a cursor: how many records were returned, and which were the last ones."""

    binding: bytes
    position: int
    record_digests: tuple[bytes, ...] = ()  # newest first
    source_cursor: str | None = None  # the cursor of the tool's own page


def compute_cursor_binding(tool: str, canonical: bytes, key: bytes) -> bytes:
    """Return the bytes that bind a cursor to a tool and its arguments.

    They are made with a key, because clients can read a cursor: nobody can find an argument or a
    record by comparing the digests of all possible values. The same applies to the digests of
    records.
    """
    return digest(tool.encode() + b"\0" + canonical, _BINDING_BYTES, key)


def encode_cursor(content: CursorPosition, key: bytes) -> str:
    """Return the cursor that encodes `content`."""
    digests = content.record_digests[:MAX_RECORD_DIGESTS]
    body = content.binding + bytes([len(digests)]) + b"".join(digests)
    body += content.position.to_bytes(_POSITION_BYTES, "big")
    if content.source_cursor is not None:
        body += b"t" + content.source_cursor.encode("utf-8", "surrogatepass")
    return encode_token("c", body, key, _SIGNATURE_BYTES)


def decode_cursor(text: str, key: bytes) -> CursorPosition:
    """Return the content of a cursor; raise InvalidToken if it is not valid."""
    body = decode_token("c", text, key, _SIGNATURE_BYTES)
    count = body[_BINDING_BYTES]
    after = _BINDING_BYTES + 1 + count * RECORD_DIGEST_BYTES
    digests = [
        body[i : i + RECORD_DIGEST_BYTES]
        for i in range(_BINDING_BYTES + 1, after, RECORD_DIGEST_BYTES)
    ]
    rest = body[after + _POSITION_BYTES :]
    return CursorPosition(
        body[:_BINDING_BYTES],
        int.from_bytes(body[after : after + _POSITION_BYTES], "big"),
        tuple(digests),
        rest[1:].decode("utf-8", "surrogatepass") if rest else None,
    )


# ------------------------------------------------------------------ pages


class PageWindow(RecordProcessor):
    """A processor that passes on the records of one page, or all if no page is requested.

    Most results fit on one page and need no cursor, so the data of a cursor is computed on demand.
    """

    def __init__(self, call: Call, flow: RecordFlow) -> None:
        self.flow = flow
        self.count = 0  # number of records that were passed on
        self.warnings: list[str] = []
        self.is_requested = bool(flow.result_options.limit) or flow.cursor_position is not None
        start: CursorPosition | None = flow.cursor_position
        self._call = call
        self._start = start or CursorPosition(b"", 0)
        self._cached_binding_and_key: tuple[bytes, bytes] | None = None
        self._offset = self._start.position
        self._limit = flow.result_options.limit or -1
        self._unpaged_value: Any = None  # a whole result, until a cursor is needed
        self._passed_records: list[Any] = []  # for a stream, only the last few
        self._known_total: int | None = None  # the number of all records, if it is known
        self._seen_count = 0
        self._is_positioned = self._offset == 0
        self._nearby_records: list[Any] = []  # records near the position, until it is found
        self._is_exhausted = False  # the tool has no more records
        self._text: str | None = None
        if start is not None and start.binding != self._binding_and_key()[0]:
            raise InputError(
                "The cursor belongs to a call of another command, or with other arguments.",
                code="E1042",
                field="cursor" if "cursor" not in call.tool.param_names else "tooli_cursor",
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "Repeat the call that returned it, or start again without a cursor.",
                ),
            )

    def _binding_and_key(self) -> tuple[bytes, bytes]:
        """Return the binding of the call's cursors and the key that signs them."""
        if self._cached_binding_and_key is None:
            call = self._call
            key = get_cursor_key(owns_process=call.caller.owns_process)
            canonical = canonical_bytes(
                call,
                self.flow.result_options.filter,
                digest_secret=None if is_public_key(key) else make_keyed_digest(key),
            )
            binding = compute_cursor_binding(requested_id(call.tool), canonical, key)
            self._cached_binding_and_key = binding, key
        return self._cached_binding_and_key

    def open(self, push: Push) -> Push:
        """Return a function that passes on one page, or `push` if the records are not paged."""
        if not self._is_paged:
            return push
        self._binding_and_key()  # computed now: the function may change its arguments
        self._push = push
        return self._accept if self._is_positioned else self._seek

    @property
    def _is_paged(self) -> bool:
        flow = self.flow
        return self.is_requested or flow.is_streamed or flow.tool_page is not None

    def finish(self) -> object:
        """Pass on the records that were held back."""
        self._is_exhausted = True
        return None if self._is_positioned else self._reposition()

    def paginate_value(self, value: Any) -> Any:
        """Return the page of a result. A stream is already paged, so its value is not changed."""
        if self.is_opened and self._is_paged:
            self.end()
            return value
        records = value if isinstance(value, str) else as_records(value)
        if records is None:
            self.flow.cursor_after = None
        elif not self.is_requested and self.flow.tool_page is None:
            self._unpaged_value = records
        elif isinstance(records, str):
            return self.remaining_text(records)
        else:
            self.set_all_records(records)
            return self.process_list(records)
        return value

    def _accept(self, record: object) -> object:
        self.count += 1
        self._passed_records.append(record)
        if (
            self.flow.is_streamed
            and self._known_total is None
            and len(self._passed_records) > MAX_RECORD_DIGESTS + 1
        ):
            del self._passed_records[0]
        return self._push(record) or self.count == self._limit

    def set_all_records(self, records: list[Any]) -> None:
        """Set the list of all records, so that the total is known and all of them are searched."""
        self._known_total = len(records)
        source_page = self.flow.tool_page
        self.flow.total = self._known_total if source_page is None else source_page.total

    def end(self) -> None:
        """End the page. If the tool has no more records, set the total."""
        if self._is_exhausted and self._known_total is None and self._text is None:
            self.flow.total = self._known_total = self._offset + self.count

    # -------------------------------------------------------------- finding the position

    def _seek(self, record: object) -> object:
        if self._is_positioned:
            return self._accept(record)
        at, last = self._seen_count, self._offset - 1
        self._seen_count += 1
        reach = SEARCH_DISTANCE if self._known_total is None else self._known_total
        if at < last - reach:
            return False
        self._nearby_records.append(record)
        if at == last and (
            not self._start.record_digests
            or self._digest_record(record) == self._start.record_digests[0]
        ):
            self._is_positioned = True
            self._nearby_records = []
        return at >= last + reach and not self._is_positioned and self._reposition()

    def _reposition(self) -> object:
        """Continue after the newest record of the cursor that is found near the position."""
        first = self._seen_count - len(self._nearby_records)
        self._is_positioned = True
        last = self._offset - 1
        self._offset = self._find_offset(first, last)
        around, self._nearby_records = self._nearby_records, []
        return any(self._accept(record) for record in around[max(self._offset - first, 0) :])

    def _find_offset(self, first: int, last: int) -> int:
        digests = [self._digest_record(record) for record in self._nearby_records]
        for steps_back, record_digest in enumerate(self._start.record_digests):
            places = [first + i for i, found in enumerate(digests) if found == record_digest]
            if places:
                if steps_back:
                    self.warnings.append(
                        "A record before the cursor was deleted or changed. "
                        "Some records may be repeated."
                    )
                return min(places, key=lambda place: abs(place - last + steps_back)) + 1
        self.warnings.append(
            "The records before the cursor were deleted or changed. The page continues by position."
        )
        return min(last + 1, self._seen_count)

    # -------------------------------------------------------------- texts

    def remaining_text(self, text: str) -> str:
        """Return the part of a text after the position."""
        self._text = text
        self._is_exhausted = True
        self.flow.total = len(text)
        if (
            self._offset
            and self._digest_record(text[max(0, self._offset - CONTEXT_CHARS) : self._offset])
            not in self._start.record_digests
        ):
            self.warnings.append("The text before the cursor has changed.")
        self.count = len(text) - self._offset
        return text[self._offset :]

    # -------------------------------------------------------------- the next cursor

    def cursor_after(self, count: int) -> str | None:
        """Return the cursor after some records of this page; None if no records follow."""
        if self._unpaged_value is not None:
            self._use_whole_result(self._unpaged_value)
            self._unpaged_value = None
        position = self._offset + count
        if self._text is not None:
            if position >= len(self._text):
                return None
            context = self._text[max(0, position - CONTEXT_CHARS) : position]
            return self._make_cursor(position, (self._digest_record(context),), None)
        source_page, total = self.flow.tool_page, self._known_total
        source_cursor = self._start.source_cursor
        if source_page is not None and total is not None and position >= total:
            if source_page.next_cursor is None:
                return None
            return self._make_cursor(0, (), source_page.next_cursor)
        if total is not None and position >= total:
            return None
        return self._make_cursor(position, self._last_digests(count), source_cursor)

    def _use_whole_result(self, value: Any) -> None:
        if isinstance(value, str):
            self.remaining_text(value)
            return
        self._passed_records = value
        self.count = len(value)
        self.set_all_records(value)

    def _last_digests(self, count: int) -> tuple[bytes, ...]:
        dropped = self.count - len(self._passed_records)
        returned = self._passed_records[: max(0, count - dropped)][-MAX_RECORD_DIGESTS:]
        return (
            *[self._digest_record(record) for record in reversed(returned)],
            *self._start.record_digests,
        )[:MAX_RECORD_DIGESTS]

    def _make_cursor(
        self, position: int, digests: tuple[bytes, ...], source_cursor: str | None
    ) -> str:
        binding, key = self._binding_and_key()
        return encode_cursor(CursorPosition(binding, position, digests, source_cursor), key)

    def _digest_record(self, record: object) -> bytes:
        """Return the digest that identifies a record in a cursor."""
        return digest(encode(record, []), RECORD_DIGEST_BYTES, self._binding_and_key()[1])
