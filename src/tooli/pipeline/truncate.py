"""Truncate results that exceed a size limit. A list is cut between records.

    records ──▶ as many as fit ──▶ the document
                └─▶ meta.truncated   number shown, total number, the limit, a file with all records
                    meta.page        the cursor for the rest
                    meta.next        the command that returns the rest

A value that cannot be divided (an object, or a single record that is too large) is shortened: its
texts and lists are cut at the end, and every part keeps its type.
"""

from __future__ import annotations

from tooli.core._hot_tables import FLAGS
from tooli.core.call import Failed, Ok
from tooli.core.option_words import option_flag, spell_option
from tooli.errors import InputError, Suggestion
from tooli.pipeline.argv_builder import is_short
from tooli.pipeline.present import ItemPresenter, draft_envelope, find_cut
from tooli.pipeline.suggestions import show_call, suggest_call
from tooli.records.call_options import resolve_result_options
from tooli.records.record_flow import RecordFlow, as_records
from tooli.records.size_limits import CALLER_LIMIT, SizeLimit, exceeded_limit, size_limits
from tooli.storage.state_files import write_overflow
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tooli.core.call import Call, Outcome
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool


NO_LIMIT = 1 << 60
"""A number of bytes or records that no result reaches."""
_NO_SIZE_LIMIT = SizeLimit(NO_LIMIT, "bytes", "max-items")
_ELLIPSIS = "…"
_SAMPLE_CURSOR = "cQ7ZkT0pXw3rB9uLm2Vd8_aHs5YfJ6NgEi1KoRtC4yPqWbUxM-hG"
_SHORT_RECORD_BYTES = 60


def truncate_result(call: Call, flow: RecordFlow, outcome: Outcome) -> Outcome:
    """Return as much of a result as fits. The complete result may be saved in a file."""
    return _Truncation(call, flow, outcome).truncate(outcome.value)


def truncate_printed_text(outcome: Ok, call: Call) -> Outcome:
    """Return an outcome whose value is printed text, truncated to the size limits of the call."""
    result_options = resolve_result_options(call.options.result_options, call.tool)
    limits = size_limits(result_options)
    if not limits or exceeded_limit(limits, draft_envelope(outcome, call)) is None:
        return outcome
    flow = RecordFlow(result_options, call.arguments)
    return truncate_result(call, flow, outcome)


def draft_answer(outcome: Outcome, call: Call, flow: RecordFlow) -> bytes:
    """Return an answer, to measure it: the envelope, or the bare result.

    The output modes that write records as they are, such as text and CSV, have no envelope.
    """
    if not flow.is_streamed:
        return draft_envelope(outcome, call)
    value = ItemPresenter(call, []).value(outcome.value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return b"" if value is None else encode(value, [])


def draft_cut(call: Call, limit: SizeLimit) -> bytes:
    """Return what a cut answer contains beside a short record: how to get the rest."""
    steps = [
        larger_budget_step(call, limit.option, 1000, "The first record"),
        next_page_step(call, _SAMPLE_CURSOR),
    ]
    page = {"next_cursor": _SAMPLE_CURSOR, "total": 10_000}
    truncated = {"shown": 0, "total": 10_000, "by": limit.option, "needs": 1000, "unit": "records"}
    meta: JsonObject = {"page": page, "truncated": truncated, "next": steps}
    return encode(meta, []) + b" 0" * (_SHORT_RECORD_BYTES // 2)


def draft_smallest_cut(call: Call, limit: SizeLimit) -> bytes:
    """Return what the shortest cut answer contains beside the envelope."""
    count = 10_000_000  # of records or characters
    truncated = {"shown": 0, "total": count, "by": limit.option, "needs": count}
    meta: JsonObject = {"result": [], "truncated": {**truncated, "unit": "characters"}}
    if not call.caller.owns_process:
        meta["page"] = {"next_cursor": _SAMPLE_CURSOR, "total": count}
        return encode(meta, [])
    steps = [
        larger_budget_step(call, limit.option, count, ""),
        next_page_step(call, _SAMPLE_CURSOR),
    ]
    meta["next"] = [{"argv": step.get("argv")} for step in steps]
    return encode(meta, [])


class _Truncation:
    def __init__(self, call: Call, flow: RecordFlow, outcome: Outcome) -> None:
        self.call = call
        self.with_value = outcome.with_value  # makes an outcome with a part of the result
        self.flow = flow
        self.limits = size_limits(flow.result_options, has_notes_on_stderr=flow.is_streamed)
        self.limit = min(self.limits, key=lambda limit: limit.max_bytes, default=_NO_SIZE_LIMIT)
        """The limit that is named in `meta`: the last one that was exceeded."""
        self.overflow_path: str | None = None

    def truncate(self, value: object) -> Outcome:
        records = as_records(value)
        if records is not None and not records:  # only `meta` can be shortened
            return self._smallest(self.with_value(records))
        if self.flow.result_options.can_save_overflow and self.flow.cursor_position is None:
            self.overflow_path = write_overflow(
                self.call.tool.id, lambda: _encode_lines(value, self.call)
            )
        if records is not None:
            return self._truncate_records(records)
        return (
            self._truncate_text(value) if isinstance(value, str) else self._truncate_object(value)
        )

    def _fits(self, outcome: Outcome, more: bytes = b"") -> bool:
        """True if the answer fits all limits, with `more` in it."""
        return self._excess(outcome, more) <= 0

    def _excess(self, outcome: Outcome, more: bytes = b"") -> int:
        """Return by how much an answer exceeds a limit, in the unit of the limit; 0 if it fits."""
        found = exceeded_limit(self.limits, draft_answer(outcome, self.call, self.flow) + more)
        if found is None:
            return 0
        self.limit, excess = found
        return excess

    # -------------------------------------------------------------- lists

    def _truncate_records(self, records: list[Any]) -> Outcome:
        max_items = self.flow.result_options.max_items or len(records)
        count = self._estimate_count(records[:max_items])
        limit_name = "max-items" if count == max_items < len(records) else self.limit.name
        while count > 0:
            self._set_meta(count, len(records), limit_name)
            outcome = self.with_value(records[:count])
            excess = self._excess(outcome)
            if excess <= 0:
                return outcome
            limit_name = self.limit.name
            count = self._reduce_count(records, count, excess)
        return self._preview_first_record(records)

    def _estimate_count(self, records: list[Any]) -> int:
        """Return how many records fit if the rest of the document is not counted."""
        encode_item = ItemPresenter(self.call, []).encode
        spare = [limit.amount for limit in self.limits]
        for count, record in enumerate(records):
            data = encode_item(record)
            for at, limit in enumerate(self.limits):
                spare[at] -= limit.measure(data) + 1
                if spare[at] < 0:
                    self.limit = limit
                    return count
        return len(records)

    def _reduce_count(self, records: list[Any], count: int, excess: int) -> int:
        """Return the number of records after removing at least `excess` and one record."""
        encode_item, measure = ItemPresenter(self.call, []).encode, self.limit.measure
        while count > 0 and excess > 0:
            count -= 1
            excess -= measure(encode_item(records[count])) + 1
        return count

    def _preview_first_record(self, records: list[Any]) -> Outcome:
        """Return no records, but a preview of the first one and the budget that it needs."""
        self._set_meta(1, len(records), self.limit.name)
        required_budget = self._required_budget(self.with_value(records[:1]))
        self._set_meta(0, len(records), self.limit.name, required_budget, "The first record")
        meta, empty = self.call.meta, self.with_value([])
        assert meta is not None
        if self._fits(empty, b" " * 60):
            preview = shorten_value(
                self._present(records[0]),
                lambda data: self._fits(empty, b',"preview":' + data),
                self.call.warnings,
            )
            if preview is not None:
                meta["truncated"]["preview"] = preview
        return self._smallest(empty)

    def _required_budget(self, outcome: Outcome) -> int:
        """Return the value of the option of the limit that an outcome needs."""
        return self.limit.required(draft_answer(outcome, self.call, self.flow))

    def _smallest(self, outcome: Outcome) -> Outcome:
        """Remove entries of `meta`, the least important first, until the document fits.

        If it does not, the outcome is an error, unless the caller did not set the limit.
        """
        meta = self.call.meta or {}
        for drop in (
            lambda: meta.pop("output_schema", None),
            lambda: self.flow.set_meta(self.call, next=self.flow.next_steps),
            lambda: [step.pop("why", None) for step in self.flow.next_steps],
            lambda: meta.get("truncated", {}).pop("full", None),
            lambda: meta.pop("page" if self.call.caller.owns_process else "next", None),
        ):
            if self._fits(outcome):
                return outcome
            drop()
        if self._fits(outcome) or not self.flow.result_options.has_explicit_size_limit:
            return outcome
        # A retry with the limit that only this answer needs would return nothing as well.
        needed = max(self._required_budget(outcome), meta.get("truncated", {}).get("needs") or 0)
        return Failed(small_limit_error(self.call, self.flow, self.limit, needed, has_run=True))

    # -------------------------------------------------------------- text

    def _truncate_text(self, text: str) -> Outcome:
        """Return the beginning of a text, up to the end of a line if one is near."""
        full_budget = (
            None
            if self.flow.cursor_after is not None
            else self._required_budget(self.with_value(text))
        )
        low, high = 0, min([len(text), *[limit.max_bytes for limit in self.limits]])
        while low < high:
            middle = (low + high + 1) // 2
            self._set_text_meta(middle, text, full_budget)
            if self._fits(self.with_value(text[:middle])):
                low = middle
            else:
                high = middle - 1
        shown_chars = text.rfind("\n", low // 2, low) + 1 or low
        shown_chars = find_cut(text, shown_chars, self.call)
        if shown_chars:
            self._set_text_meta(shown_chars, text, full_budget)
            return self.with_value(text[:shown_chars])
        self._set_text_meta(1, text)
        first_budget = self._required_budget(self.with_value(text[:1]))
        part = "The whole result" if full_budget is not None else "The first character"
        self.flow.cursor_after = None  # nothing is shown, so a cursor would skip text
        self._set_text_meta(0, text, full_budget or first_budget, part)
        return self._smallest(self.with_value(""))

    def _set_text_meta(
        self,
        shown_count: int,
        text: str,
        required_budget: int | None = None,
        part: str = "The whole result",
    ) -> None:
        self._set_meta(
            shown_count, len(text), self.limit.name, required_budget, part, unit="characters"
        )

    # -------------------------------------------------------------- objects

    def _truncate_object(self, whole_value: object) -> Outcome:
        """Return a shortened value, and add a next step with the budget for the whole value."""
        call = self.call
        value = self._present(whole_value)
        total = len(encode(value, call.warnings))
        required_budget = self._required_budget(self.with_value(whole_value))
        truncated = {"shown": total, "total": total, "unit": "bytes", "by": self.limit.name}
        if self.overflow_path is not None:
            truncated["full"] = self.overflow_path
        self.flow.set_meta(call, truncated=truncated)
        self.flow.add_next_steps(call, self._larger_budget_steps(required_budget))
        shortened = shorten_value(
            value,
            lambda data: self._fits(self.with_value(None), b',"result":' + data),
            call.warnings,
        )
        truncated["shown"] = 0 if shortened is None else len(encode(shortened, []))
        if shortened is None:
            truncated["needs"] = required_budget
        return self._smallest(self.with_value(shortened))

    def _present(self, value: object) -> Any:
        """Return a redacted value. Redact before cutting, because a cut may split a secret."""
        return ItemPresenter(self.call).value(value)

    # -------------------------------------------------------------- meta

    def _set_meta(
        self,
        shown_count: int,
        length: int,
        limit_name: str,
        required_budget: int | None = None,
        part: str = "The whole result",
        unit: str | None = None,
    ) -> None:
        """Set `meta.truncated`. `part` is the part of the result that needs `required_budget`."""
        steps: list[JsonObject] = []
        if required_budget is not None:
            steps = self._larger_budget_steps(required_budget, part)
        details = {"full": self.overflow_path, "needs": required_budget, "unit": unit}
        set_truncated_meta(self.call, self.flow, shown_count, limit_name, length, steps, **details)

    def _larger_budget_steps(
        self, required_budget: int, part: str = "The whole result"
    ) -> list[JsonObject]:
        """Return the next step with a larger limit; none if the agent would cut its answer.

        The agent can read the file with the complete result instead.
        """
        if self.limit.name == CALLER_LIMIT and self.overflow_path is not None:
            return []
        return [larger_budget_step(self.call, self.limit.option, required_budget, part)]


def small_limit_error(
    call: Call, flow: RecordFlow, limit: SizeLimit, needed: int, *, has_run: bool
) -> InputError:
    """Return the error for a limit that is too small for the answer without its result.

    Before the command has run, `needed` has room for what a cut answer contains.
    """
    name = limit.option.replace("-", "_")
    given, least = spell_option(call, name, limit.amount), spell_option(call, name, needed)
    message = f"{given} is too small for any answer. One that is cut needs about {needed}."
    if has_run:
        message = f"{given} is too small: the answer needs at least {needed}. The command has run."
    is_safe = not has_run or call.tool.behavior.read_only or call.tool.behavior.idempotent
    suggestion = Suggestion(
        "retry_with_modified_input",
        f"Use {least} or more, or 0 for no limit.",
        applicability="machine_applicable" if is_safe else "maybe_incorrect",
    )
    options: JsonObject = {name: needed}
    suggestion.target = suggest_call(call, dict(flow.raw_arguments), **options)
    return InputError(
        message,
        code="E1007",
        field=name,
        suggestion=suggestion,
        details={"needs": needed},
    )


def set_truncated_meta(
    call: Call,
    flow: RecordFlow,
    shown_count: int,
    limit_name: str,
    length: int | None,
    first_steps: Sequence[JsonObject] = (),
    **details: object,
) -> None:
    """Set `meta.truncated`, `meta.page` and `meta.next` of a truncated result.

    `length` is the number of records or characters before the truncation, or None if unknown.
    `first_steps` precede the next page in `meta.next`. `details` are more fields of
    `meta.truncated`; those that are None are left out.
    """
    total = flow.total if flow.total is not None else length
    fields = {"shown": shown_count, "total": total, "by": limit_name, **details}
    truncated = {name: value for name, value in fields.items() if value is not None}
    flow.set_meta(call, truncated=truncated)
    # If no record is shown, the cursor skips the first one, which does not fit.
    cursor = flow.cursor_after(shown_count or 1) if flow.cursor_after is not None else None
    page = dict((call.meta or {}).get("page", {}))
    page.pop("next_cursor", None)
    if cursor is not None:
        page = {**{k: v for k, v in page.items() if k == "limit"}, "next_cursor": cursor}
        if flow.total is not None:
            page["total"] = flow.total
    flow.set_meta(call, page=page)
    next_pages = [] if cursor is None else [next_page_step(call, cursor)]
    flow.add_next_steps(call, [*first_steps, *next_pages])


def larger_budget_step(
    call: Call, limit_name: str, required_budget: int, part: str = "The whole result"
) -> JsonObject:
    """Return a next step that repeats the call with a budget that is large enough for `part`."""
    name = limit_name.replace("-", "_")
    budget = spell_option(call, name, required_budget)
    return retry_step(call, f"{part} needs {budget}.", **{name: required_budget})


def next_page_step(call: Call, cursor: str) -> JsonObject:
    """Return the next step for the rest of a result."""
    return retry_step(call, "The rest of the result.", cursor=cursor)


def _encode_lines(value: object, call: Call) -> Iterable[bytes]:
    """Yield a result as JSON, each record of a list on its own line."""
    encode_item = ItemPresenter(call).encode
    records = as_records(value)
    if records is None:
        yield encode_item(value)
        yield b"\n"
        return
    for i, record in enumerate(records):
        yield b",\n" if i else b"[\n"
        yield encode_item(record)
    yield b"\n]\n"


# ------------------------------------------------------------------ shortening

_SHORTENING_STEPS = (
    *((8000, 400), (4000, 150), (2000, 60), (1000, 30), (500, 15), (250, 8)),
    *((120, 5), (60, 3), (30, 2), (15, 1), (8, 1), (1, 1)),
)
"""Pairs of a maximum text length and a maximum list length, in the order they are tried."""


def shorten_value(value: object, fits: Callable[[bytes], bool], warnings: list[str]) -> Any:
    """Shorten texts and lists until the JSON of a value fits; return None if it cannot be made to.

    `fits` returns whether JSON of a size fits.
    """
    if not fits(b"    "):
        return None
    json_value = to_jsonable(value, warnings)
    for depth in (12, 4, 2, 1, 0):
        for max_chars, max_items in _SHORTENING_STEPS:
            shortened = _shorten(json_value, max_chars, max_items, depth)
            if fits(encode(shortened, [])):
                return shortened
    return None


def _shorten(value: object, max_chars: int, max_items: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= max_chars else value[:max_chars] + _ELLIPSIS
    if is_list(value):
        kept = value[:max_items] if depth else ()
        return [_shorten(item, max_chars, max_items, depth - 1) for item in kept]
    if is_object(value):
        keys = list(value)[: max(max_items, 8) if depth else 0]
        return {key: _shorten(value[key], max_chars, max_items, depth - 1) for key in keys}
    return value


# ------------------------------------------------------------------ the call for the rest


def retry_step(call: Call, why: str, **changes: Any) -> JsonObject:
    """Return a next step: the call with some framework options changed, as the caller writes it.

    Placeholders, such as `<items>`, replace long values.
    """
    result_options = call.options.result_options
    typed = None if result_options is None else result_options.argv
    if typed is not None and is_short(typed):
        words = list(typed)
        for name, value in changes.items():
            words = _set_flag(words, call, name, str(value))
        return {"argv": [*(call.caller.prog or (call.tool.app,)), *words], "why": why}
    arguments = call.arguments if call.flow is None else call.flow.raw_arguments
    step, placeholders = show_call(suggest_call(call, arguments, **changes), call)
    if placeholders:
        why += f" Replace {', '.join(placeholders)} with the values of this call."
    return {**step, "why": why}


def _spellings(tool: Tool, name: str) -> set[str]:
    """Return the flags that set a framework option of a tool, such as --fields and --select."""
    own = {flag for param in tool.params for flag in param.flags}
    known = [flag for flag, (option, _, _) in FLAGS.items() if option == name and flag[:2] == "--"]
    unprefixed = [] if tool.passes_arguments else [flag for flag in known if flag not in own]
    return {*unprefixed, *[f"--tooli-{f[2:]}" for f in known]}


def _set_flag(words: list[str], call: Call, name: str, value: str) -> list[str]:
    """Return the words of a line with the last value of an option changed, or with it added."""
    flag = option_flag(name, call.tool, call=call)
    flags = _spellings(call.tool, name)
    end = words.index("--") if "--" in words else len(words)
    for i in range(end - 1, -1, -1):
        word, equals, _ = words[i].partition("=")
        is_flag = word[:2] + word[2:].replace("_", "-") in flags
        if is_flag and equals:
            return [*words[:i], f"{word}={value}", *words[i + 1 :]]
        if is_flag and i + 1 < len(words):
            return [*words[: i + 1], value, *words[i + 2 :]]
    added = [flag, value]
    if end == len(words):
        return [*words, *added]
    path = list(call.tool.cli_path)
    insert_at = len(path) if words[: len(path)] == path else 0
    return [*words[:insert_at], *added, *words[insert_at:]]
