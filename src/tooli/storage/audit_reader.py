"""Read the audit log: verify its chain, return its last lines, follow it."""

from __future__ import annotations

import os
from json import loads
from time import sleep

from tooli.core import Record
from tooli.storage.audit_log import (
    FIRST_LINK,
    SUM_FIELD,
    AuditHead,
    find_log_files,
    list_log_files,
    verify_line,
)
from tooli.storage.signing import load_key
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

    from tooli.core.protocols import JsonObject
    from tooli.storage.audit_log import ChainLink

POLL_INTERVAL_SECONDS = 0.25
"""Seconds between two reads of a log that is followed."""


class IntegrityFault(Record):
    """The first position at which a log is not valid."""

    file: str
    line: int
    reason: str
    seq: int | None = None


class VerificationResult:
    """The result of verifying a log."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = 0
        self.partial_lines = 0  # left by crashes
        self.is_signed = False
        self.fault: IntegrityFault | None = None


# ------------------------------------------------------------------ verifying


def verify_log(path: str) -> VerificationResult:
    """Verify a whole log; raise OSError if it cannot be read."""
    result = VerificationResult(path)
    key = load_key("audit") or b""  # verifying must not create a key
    # The head is written before the log. So these files have a head, unless it was removed.
    names = find_log_files(path)
    with AuditHead(path, read_only=True) as head:  # writers wait for the lock
        head_links = head.read(key)
        if head_links is not None:
            names = find_log_files(path)
        if head_links is None and not names:
            if key or head.exists():  # with a key, this app or another one has logged before
                result.fault = IntegrityFault(
                    path, 0, "there is no log: nothing was logged yet, or the whole log was removed"
                )
            return result
        files = _open_files(names)
        sizes = [os.fstat(file.fileno()).st_size for _, file in files]
    result.is_signed = bool(key)
    chain = _ChainVerifier(result, key, head_links and head_links[1])
    try:
        for (name, file), size in zip(files, sizes, strict=True):
            chain.read(name, file, size)
            if result.fault is not None:
                return result
    finally:
        for _, file in files:
            file.close()
    chain.finish(head_links and head_links[0])
    return result


def _open_files(names: list[str]) -> list[tuple[str, IO[bytes]]]:
    return [(name, open(name, "rb")) for name in names]


class _ChainVerifier:
    """Verifies that each line follows the one before it."""

    def __init__(self, result: VerificationResult, key: bytes, first: ChainLink | None) -> None:
        self._result = result
        self._key = key
        self._first_link = first  # None if there is no valid head
        self._last_seq, self._last_sum = 0, ""
        self._position = (result.path, 0)
        # Invalid lines since the last valid one.
        self._unverified: list[tuple[str, int, bytes]] = []

    def read(self, name: str, file: IO[bytes], size: int) -> None:
        """Verify one file of the log."""
        remaining = size
        for number, line in enumerate(file, 1):
            if remaining <= 0:
                return
            remaining -= len(line)
            self._position = (name, number)
            link = verify_line(line.rstrip(b"\n"), self._key)
            if link is None:
                self._unverified.append((name, number, line))
            else:
                self._accept_line(link, line)
            if self._result.fault is not None:
                return

    def _accept_line(self, link: tuple[int, str], line: bytes) -> None:
        result = self._result
        seq, line_sum = link
        record: JsonObject = loads(line)
        is_first = (
            not result.lines
            and not self._unverified
            and self._may_be_first(seq, record.get("prev"))
        )
        is_next = seq == self._last_seq + 1 and record.get("prev") == self._last_sum
        if not is_next and not is_first:
            if self._unverified:
                return self._report_altered(*self._unverified[0])
            before = self._last_seq if result.lines else (self._first_link or FIRST_LINK)[0] - 1
            return self._report_fault(_describe_gap(before, seq), seq)
        for unverified in self._unverified:
            if _is_complete_line(unverified[2]):  # a crash leaves only partial lines
                return self._report_altered(*unverified)
            result.partial_lines += 1
        self._unverified.clear()
        if "after" in record:
            return self._report_fault(f"when this line was written, {record['after']}", seq)
        result.lines += 1
        self._last_seq, self._last_sum = seq, line_sum

    def _may_be_first(self, seq: int, prev: object) -> bool:
        """True if a line may be the oldest of the log.

        It is the first link of the head, or an older line: a crash during rotation can leave a
        file that should have been dropped. Without a head every line may be the oldest, and
        finish() reports the missing head.
        """
        first = self._first_link
        return first is None or seq < first[0] or (seq, prev) == first

    def finish(self, head: ChainLink | None) -> None:
        """Compare the last line with the head."""
        result = self._result
        if self._unverified:
            line = self._unverified[-1][2]
            if len(self._unverified) > 1 or line.endswith(b"\n") or _is_complete_line(line):
                return self._report_altered(*self._unverified[0])
            result.partial_lines += 1
        if head is None:
            self._report_fault("the head of the log is missing, or was changed", self._last_seq)
        elif head[0] > self._last_seq:
            missing_count = head[0] - self._last_seq
            self._report_fault(
                f"the last {missing_count} lines are missing"
                if missing_count > 1
                else "the last line is missing"
            )
        elif head[0] < self._last_seq - 1:
            self._report_fault("the head is older than the log", self._last_seq)
        elif head[0] == self._last_seq and head[1] != self._last_sum:
            self._report_fault("the last line was replaced", self._last_seq)
        return None

    def _report_altered(self, name: str, number: int, line: bytes) -> None:
        self._position = (name, number)
        self._report_fault("this line was changed, or it was written with another key")

    def _report_fault(self, reason: str, seq: int | None = None) -> None:
        self._result.fault = IntegrityFault(*self._position, reason, seq)


def _describe_gap(before: int, seq: int) -> str:
    if seq > before + 1:
        return f"lines are missing before this one: {before + 1} to {seq - 1}"
    if seq == before + 1:
        return "this line does not follow the line before it"
    return f"this line is out of order: {seq} after {before}"


def _is_complete_line(line: bytes) -> bool:
    """True if a line looks complete. A crash leaves only the beginning of a line."""
    return SUM_FIELD in line and line.rstrip(b"\n").endswith(b'"}')


# ------------------------------------------------------------------ the last lines


def read_last_records(path: str, count: int) -> list[JsonObject]:
    """Return the last records of a log, oldest first. Invalid lines are skipped."""
    return _read_last(count, list_log_files(path))


def _read_last(
    count: int, names: list[str], result: list[JsonObject] | None = None
) -> list[JsonObject]:
    """Return the last `count` records: from the end of the files, then from `result`."""
    result = [] if result is None else result[max(0, len(result) - count) :]
    for name in reversed(names):
        file = _open_if_exists(name) if len(result) < count else None
        if file is not None:  # a crash during rotation leaves a gap in the numbers of the files
            with file:
                lines = _parse_lines(file.read().split(b"\n"))
            result[:0] = lines[-(count - len(result)) :]
    return result


def _parse_lines(lines: list[bytes]) -> list[JsonObject]:
    return [record for line in lines if (record := _parse_line(line)) is not None]


def follow_log(
    path: str, count: int = 0, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[JsonObject]:
    """Yield the last records of a log, then each new one when it is written."""
    file = _open_if_exists(path)
    try:
        *lines, rest = (file.read() if file is not None else b"").split(b"\n")
        if count:
            older = [name for name in list_log_files(path)[:-1] if not _is_same_file(name, file)]
            yield from _read_last(count, older, _parse_lines(lines))
        while not should_stop():
            # The check comes before the read. If the file is already rotated, it gets no more
            # lines, so the read returns all of them.
            is_rotated = not _is_same_file(path, file)
            data = file.read() if file is not None else b""
            *lines, rest = (rest + data).split(b"\n")
            yield from _parse_lines(lines)
            if data:
                continue
            if is_rotated and (newer := _open_if_exists(path)) is not None:
                if file is not None:
                    file.close()
                file, rest = newer, b""
            else:
                sleep(POLL_INTERVAL_SECONDS)
    finally:
        if file is not None:
            file.close()


def _open_if_exists(path: str) -> IO[bytes] | None:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return None


def _is_same_file(path: str, file: IO[bytes] | None) -> bool:
    """True if a path still names the open file."""
    try:
        return file is not None and os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False


def _parse_line(line: bytes) -> JsonObject | None:
    """Return the record of a line without the fields of the chain."""
    try:
        record: Any = loads(line)
    except (ValueError, RecursionError):
        return None
    if not is_object(record):
        return None
    return {name: value for name, value in record.items() if name not in ("prev", "sum")}
