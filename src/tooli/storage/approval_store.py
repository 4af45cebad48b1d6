"""Approval requests: signed files that record what a person was asked and how they decided.

    refused call ─▶ MATCH.ID.pending ─┬ grant ▶ MATCH.ID.granted ─▶ the next call claims it: ID.used
                                      └ deny  ▶ MATCH.ID.denied ──▶ the next call is refused, once

MATCH is a digest of everything that a request is bound to: the tool, its arguments, the content of
the files in them, the working folder, the caller and what the call would do. A file is valid only
if it is signed with the user's key and has not expired. The signature covers the parts of the file
name. The age of a file is measured by two clocks, the system clock and the time since the last
boot. The file expires as soon as one of the two ages reaches the lifetime. A process claims a grant
by creating its marker file (ID.used), which only one process can do. A call that claimed a grant
and did not run deletes the marker again.
"""

from __future__ import annotations

import os
import time
from errno import ELOOP, ENOENT, ENXIO
from json import loads

from tooli.core import Record
from tooli.core.call_fingerprint import digest
from tooli.errors import AuthError, Suggestion
from tooli.storage.signing import load_or_create_key, sign_hex, verify_hex
from tooli.storage.state_files import (
    UnusableFile,
    check_private_folder,
    claim_once,
    delete_own_files,
    get_state_dir,
    is_hex,
    make_private_folder,
    read_boot_id,
    read_regular_file,
    release_claim,
    write_private_file,
)
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

APPROVAL_TTL_SECONDS = 15 * 60
"""Lifetime of a request, and of the decision about it, in seconds."""
MAX_PENDING_REQUESTS = 500
"""Maximum number of requests that can wait for a decision."""
MAX_PENDING_REQUESTS_PER_CALLER = 100
"""Maximum number of requests of one caller that can wait for a decision."""
_MAX_FILE_BYTES = 1 << 18
_FILE_RETENTION_SECONDS = 4 * APPROVAL_TTL_SECONDS
_SIGNATURE_BYTES = 32
_CODE_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o and u


class ApprovalRequest(Record):
    """A request to approve a call, and the decision about it."""

    id: str
    match: str
    app: str
    tool: str
    parts: Any  # digests of the parts of the call by name; `match` is a digest of all of them
    folder: str  # the working folder
    arguments: Any  # as they are displayed
    files: Any  # the files in the arguments, as they are displayed
    plan: Any  # the result of a dry run, or None
    effects: Any  # the declared behavior of the tool
    caller: str
    owner: str  # a keyed digest of the caller whose requests are counted together
    danger: str | None
    state: str  # "pending" | "granted" | "denied"
    created: float  # system clock, at the request or at the decision
    ticks: float  # seconds since the last boot, at the same moment
    boot: str  # ID of the boot
    nonce: str

    @property
    def expires(self) -> float:
        """Time at which the request or its decision expires."""
        return self.created + APPROVAL_TTL_SECONDS


class ClockReading(Record):
    """The current time by two clocks: the system clock, and the seconds since the last boot."""

    clock: float
    ticks: float
    boot: str


def read_clocks() -> ClockReading:
    """Read the system clock and the seconds since the last boot."""
    boottime_clock = getattr(time, "CLOCK_BOOTTIME", None)
    ticks = time.monotonic() if boottime_clock is None else time.clock_gettime(boottime_clock)
    return ClockReading(time.time(), ticks, read_boot_id())


def make_unavailable_error(reason: str) -> AuthError:
    """Return the error (E2104) for a call whose approval cannot be stored or checked."""
    return AuthError(
        f"Approvals cannot be stored or checked: {reason}.",
        code="E2104",
        suggestion=Suggestion(
            "ask_human",
            "Set TOOLI_STATE_DIR to a folder that this user owns and can write, or run the command "
            "in a terminal.",
        ),
    )


def _make_too_many_error(text: str) -> AuthError:
    return AuthError(
        f"No approval was requested: {text}.",
        code="E2104",
        suggestion=Suggestion(
            "ask_human",
            "Ask a human to decide about the pending requests (`approvals list`), or repeat the "
            f"call when they have expired, after {APPROVAL_TTL_SECONDS // 60} minutes.",
        ),
    )


class ApprovalStore:
    """The approval requests of one user, in a folder that only the user can write to.

    The methods raise E2104 if the files or the key cannot be used. Only `mark_used` and `release`
    ignore such errors. An approval that cannot be checked is not granted.
    """

    def __init__(self) -> None:
        state_dir = get_state_dir()
        self._folder = os.path.join(state_dir, "approvals")
        with _StoreErrors():
            make_private_folder(self._folder)
            for folder in (state_dir, self._folder):
                check_private_folder(folder)
        key = load_or_create_key("approvals")
        if key is None:
            raise make_unavailable_error("the key that signs them cannot be read")
        self._key = key

    def digest_bytes(self, data: bytes) -> str:
        """Return a keyed digest, which reveals nothing about the data without the key."""
        return digest(data, 16, self._key).hex()

    # -------------------------------------------------------------- used by calls

    def claim_grant(self, match: str) -> ApprovalRequest | None:
        """Return a grant for a call and mark it as used; None if there is none.

        A grant is used if its marker file exists, even if the file of the grant is restored.
        """
        for request in self._iter_requests("granted", match):
            with _StoreErrors():
                if claim_once(self._folder, _used_file_name(request), _FILE_RETENTION_SECONDS):
                    return request
        return None

    def mark_used(self, request: ApprovalRequest) -> None:
        """Delete a grant whose call has run. Its marker stays until the grant has expired."""
        release_claim(self._folder, self._file_name(request))

    def release(self, request: ApprovalRequest) -> None:
        """Make a grant available again, because its call did not run."""
        release_claim(self._folder, _used_file_name(request))

    def list_granted(self, arguments_digest: str) -> list[ApprovalRequest]:
        """Return the grants for calls with these arguments, even if other parts differ."""
        return [
            found
            for found in self._iter_requests("granted")
            if found.parts["the arguments"] == arguments_digest
        ]

    def claim_denial(self, match: str) -> ApprovalRequest | None:
        """Return the denial of a call and delete it; None if there is none."""
        for request in self._iter_requests("denied", match):
            if self._remove(self._file_name(request)):
                return request
        return None

    def request_approval(self, match: str, owner: str = "", **fields: Any) -> ApprovalRequest:
        """Return the pending request for a call; create one if there is none.

        `owner` identifies the caller whose requests are counted together.
        """
        pending = min(self._iter_requests("pending", match), key=_sort_key, default=None)
        if pending is not None:
            return pending
        owner = self.digest_bytes(owner.encode("utf-8", "surrogatepass"))
        self._check_room(self._purge_expired(), owner)
        now = read_clocks()
        request = ApprovalRequest(
            match=match,
            owner=owner,
            id=f"{generate_code(4)}-{generate_code(4)}",
            state="pending",
            created=now.clock,
            ticks=now.ticks,
            boot=now.boot,
            nonce=os.urandom(16).hex(),
            **fields,
        )
        self._publish_draft(self._write_draft(request), request)
        first = min(self._iter_requests("pending", match), key=_sort_key, default=request)
        if first.id != request.id:  # another process asked for the same call at the same time
            self._remove(self._file_name(request))
        return first

    # -------------------------------------------------------------- used by approvers

    def list_pending(self, app: str | None = None) -> list[ApprovalRequest]:
        """Return the pending requests of an app, or of all apps, oldest first."""
        requests = [found for found in self._iter_requests("pending") if app in (None, found.app)]
        return sorted(requests, key=_sort_key)

    def decide(self, request: ApprovalRequest, state: str) -> bool:
        """Record a decision; return False if the request is not pending any more."""
        now = read_clocks()
        decided = request.replace(state=state, created=now.clock, ticks=now.ticks, boot=now.boot)
        draft = self._write_draft(decided)  # before the request is deleted: the disk may be full
        if not self._remove(self._file_name(request)):
            self._remove(draft)
            return False
        self._publish_draft(draft, decided)
        return True

    # -------------------------------------------------------------- files

    def _file_name(self, request: ApprovalRequest) -> str:
        return f"{request.match}.{request.id}.{request.state}"

    def _list_files(self) -> list[str]:
        with _StoreErrors():
            return os.listdir(self._folder)

    def _iter_requests(self, state: str, match: str | None = None) -> Iterator[ApprovalRequest]:
        """Yield the valid requests in a state that have not expired."""
        now = read_clocks()
        for name in self._list_files():
            head, _, rest = name.partition(".")
            if rest.endswith(f".{state}") and match in (None, head):
                found = self._load(name)
                if found is not None and _is_current(found, now):
                    yield found

    def _load(self, name: str) -> ApprovalRequest | None:
        """Return the request in a file; None if it is not a validly signed request."""
        path, no_follow = os.path.join(self._folder, name), getattr(os, "O_NOFOLLOW", 0)
        try:
            with _StoreErrors(ignored=_NOT_A_FILE_ERRNOS):
                data, _ = read_regular_file(path, _MAX_FILE_BYTES, no_follow)
        except (OSError, UnusableFile):
            return None
        body, _, signature = data.rpartition(b"\n")
        if not verify_hex(body, signature, self._key, _SIGNATURE_BYTES):
            return None
        try:
            request = ApprovalRequest(**loads(body))
        except TypeError:  # written by another version of tooli
            return None
        return request if self._file_name(request) == name else None

    def _write_draft(self, request: ApprovalRequest) -> str:
        """Write a request to a file with a temporary name, so that no process reads a partial file.

        A request that does not fit into a file cannot be shown, so it is refused.
        """
        fields = {name: getattr(request, name) for name in ApprovalRequest.__match_args__}
        body = encode(fields, [])
        if len(body) > _MAX_FILE_BYTES // 2:
            raise make_unavailable_error(f"the request is too large ({len(body)} bytes)")
        data = body + b"\n" + sign_hex(body, self._key, _SIGNATURE_BYTES)
        draft = f"{os.urandom(8).hex()}.draft"
        with _StoreErrors():
            try:
                write_private_file(os.path.join(self._folder, draft), data)
            except OSError:
                self._remove(draft)
                raise
        return draft

    def _publish_draft(self, draft: str, request: ApprovalRequest) -> None:
        target = os.path.join(self._folder, self._file_name(request))
        with _StoreErrors():
            os.rename(os.path.join(self._folder, draft), target)

    def _remove(self, name: str) -> bool:
        """Delete a file; return False if it did not exist."""
        try:
            with _StoreErrors(ignored=(ENOENT,)):
                os.unlink(os.path.join(self._folder, name))
        except FileNotFoundError:
            return False
        return True

    def _check_room(self, pending_count: int, owner: str) -> None:
        """Raise E2104 if too many requests are pending, of all callers or of one."""
        if pending_count >= MAX_PENDING_REQUESTS_PER_CALLER:
            own_count = sum([found.owner == owner for found in self._iter_requests("pending")])
            if own_count >= MAX_PENDING_REQUESTS_PER_CALLER:
                raise _make_too_many_error(f"{own_count} requests of this caller are pending")
        if pending_count >= MAX_PENDING_REQUESTS:
            raise _make_too_many_error(f"{pending_count} requests are pending")

    def _purge_expired(self) -> int:
        """Delete expired files; return the number of pending requests."""
        now = time.time()
        pending_count = 0

        def is_obsolete(name: str, found: os.stat_result) -> bool:
            nonlocal pending_count
            age = now - found.st_mtime
            if name.endswith(".pending") and age < APPROVAL_TTL_SECONDS:
                pending_count += 1
            return age > _FILE_RETENTION_SECONDS and _is_store_name(name)

        delete_own_files(self._folder, is_obsolete)
        return pending_count


_NOT_A_FILE_ERRNOS = (ENOENT, ELOOP, ENXIO)  # deleted, a link or a socket


def _is_store_name(name: str) -> bool:
    """True for a name that the store gives to a file."""
    start, _, kind = name.rpartition(".")
    if kind == "draft":
        return is_hex(start, 16)
    match, _, request_id = start.rpartition(".")
    is_known_kind = kind in ("pending", "granted", "denied") and is_hex(match, 32)
    is_id = len(request_id) == 9 and request_id[4] == "-"
    return is_id and (is_known_kind or (kind == "used" and not match))


def _used_file_name(request: ApprovalRequest) -> str:
    return f"{request.id}.used"


def _sort_key(request: ApprovalRequest) -> tuple[float, str]:
    return request.created, request.id


def _is_current(request: ApprovalRequest, now: ClockReading) -> bool:
    """True if a request is from this boot, not expired by either clock, and not in the future."""
    if request.boot != now.boot:
        return False
    by_clock = 0 <= now.clock - request.created < APPROVAL_TTL_SECONDS
    return by_clock and 0 <= now.ticks - request.ticks < APPROVAL_TTL_SECONDS


def generate_code(length: int) -> str:
    """Return a random code without letters that are easily confused."""
    return "".join([_CODE_ALPHABET[byte & 31] for byte in os.urandom(length)])


class _StoreErrors:
    """Context manager that replaces an OSError by E2104, unless its number is ignored."""

    def __init__(self, *, ignored: tuple[int, ...] = ()) -> None:
        self._ignored = ignored

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> None:
        if isinstance(failure, OSError) and failure.errno not in self._ignored:
            prefix = f"{failure.filename}: " if failure.filename else ""
            reason = failure.strerror or "unknown error"
            raise make_unavailable_error(f"{prefix}{reason[:1].lower()}{reason[1:]}") from None
