"""Approvals: what a human was asked, and what they said. One sealed file for each, used once.

    refused call ─▶ MATCH.ID.pending ─┬ grant ▶ MATCH.ID.granted ─▶ the same call takes it: ID.used
                                      └ deny  ▶ MATCH.ID.denied ──▶ the same call is told, once

MATCH is a digest of all that a request is bound to: the tool, its arguments, the caller and what
the call would do. A file counts only with a seal of this user's key over all that it says, its
name included, and within its time, by the clock and by the time since the machine was started.
Of several processes that want the same file, one gets it: whoever creates what comes next. A call
that took a grant and did not run takes the mark away again.
"""

from __future__ import annotations

import os
import time
from errno import ELOOP, ENOENT, ENXIO

from tooli.core.call_fingerprint import digest
from tooli.core.record import Record
from tooli.errors import AuthError, Suggestion
from tooli.storage.process_identity import current_process
from tooli.storage.state_files import claim_once, release_claim

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

APPROVAL_TTL_SECONDS = 15 * 60
"""Seconds for which a request waits, and then a human's word holds."""
MAX_PENDING_REQUESTS = 500
"""Requests that may wait at once: nobody reads more."""
_MAX_FILE_BYTES = 1 << 18
_FILE_RETENTION_SECONDS = (
    4 * APPROVAL_TTL_SECONDS
)  # seconds after which a file of ours is of no use to anybody
_CODE_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # none that is taken for another


class ApprovalRequest(Record):
    """One question to a human: may this call run?"""

    id: str
    match: str
    app: str
    tool: str
    arguments: Any  # as people are shown them
    plan: Any  # what the function says that it would do, where it says so
    effects: Any  # what it does to the world, as its author declares
    caller: str
    danger: str | None
    state: str  # "pending" | "granted" | "denied"
    created: float
    ticks: float
    boot: str
    nonce: str

    @property
    def expires(self) -> float:
        """When it is over, by the clock."""
        return self.created + APPROVAL_TTL_SECONDS


class ClockReading(Record):
    """Now: by the clock, which anybody may set, and since the machine was started."""

    clock: float
    ticks: float
    boot: str


def read_clocks() -> ClockReading:
    """The present moment."""
    boottime_clock = getattr(time, "CLOCK_BOOTTIME", None)
    ticks = time.monotonic() if boottime_clock is None else time.clock_gettime(boottime_clock)
    return ClockReading(time.time(), ticks, current_process().partition(":")[0])


def make_unavailable_error(reason: str) -> AuthError:
    """The refusal of a call that a human would have to approve, where that cannot be kept."""
    return AuthError(
        f"Approvals cannot be kept or checked here: {reason}.",
        code="E2104",
        suggestion=Suggestion(
            "ask_human",
            "Point TOOLI_STATE_DIR at a folder of this user's that can be written, or run the "
            "command at a terminal.",
        ),
    )


class ApprovalStore:
    """The requests of one user, in a folder that nobody else enters.

    Every method raises E2104 where files or the key fail: what cannot be checked is not granted.
    """

    def __init__(self) -> None:
        from tooli.storage.signing import load_or_create_key
        from tooli.storage.state_files import get_state_dir

        state_dir = get_state_dir()
        self._folder = os.path.join(state_dir, "approvals")
        try:
            os.makedirs(state_dir, mode=0o700, exist_ok=True)
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            for folder in (state_dir, self._folder):
                _check_private_folder(folder)
        except OSError as failure:
            raise make_unavailable_error(_describe_os_error(failure)) from None
        key = load_or_create_key("approvals")
        if key is None:
            raise make_unavailable_error("there is no key to seal them with")
        self._key = key

    def digest_parts(self, *parts: Any) -> str:
        """What a request is bound to, as a text that tells nothing."""
        from tooli.text.json_encoder import encode

        return digest(encode(list(parts), []), 16, self._key).hex()

    def digest_secret(self, secret: Any) -> str:
        """What tells a secret from another one, and nothing to whoever has no key."""
        return digest(repr(secret).encode("utf-8", "surrogatepass"), 16, self._key).hex()

    # -------------------------------------------------------------- for a call

    def claim_grant(self, match: str) -> ApprovalRequest | None:
        """A grant for that call, which nobody else gets from now on; of two racers one does.

        A mark says that it is taken. Only what is marked has been used, or is being used: a file
        that somebody puts back changes nothing.
        """
        for request in self._iter_requests("granted", match):
            try:
                if claim_once(self._folder, _used_file_name(request), _FILE_RETENTION_SECONDS):
                    return request
            except OSError as failure:
                raise make_unavailable_error(_describe_os_error(failure)) from None
        return None

    def mark_used(self, request: ApprovalRequest) -> None:
        """The call has run; the mark stays for as long as the grant could be put back."""
        release_claim(self._folder, self._file_name(request))

    def release(self, request: ApprovalRequest) -> None:
        """The call has not run: the grant is there again, for as long as it would have been."""
        release_claim(self._folder, _used_file_name(request))

    def claim_denial(self, match: str) -> ApprovalRequest | None:
        """A human's no to that call, told once."""
        for request in self._iter_requests("denied", match):
            if self._remove(self._file_name(request)):
                return request
        return None

    def request_approval(self, match: str, **fields: Any) -> ApprovalRequest:
        """The request that waits for a human; a new one where none does."""
        pending = min(self._iter_requests("pending", match), key=_sort_key, default=None)
        if pending is not None:
            return pending
        self._purge_expired()
        now = read_clocks()
        request = ApprovalRequest(
            match=match,
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
        if first.id != request.id:  # the same call, at the same moment
            self._remove(self._file_name(request))
        return first

    # -------------------------------------------------------------- for a human

    def list_pending(self, app: str | None = None) -> list[ApprovalRequest]:
        """What waits for a human's word, the oldest first: an app's, or all of them."""
        return sorted(
            [one for one in self._iter_requests("pending") if app in (None, one.app)], key=_sort_key
        )

    def decide(self, request: ApprovalRequest, state: str) -> bool:
        """Write a human's word down; False where somebody else was faster."""
        now = read_clocks()
        decided = request.replace(state=state, created=now.clock, ticks=now.ticks, boot=now.boot)
        draft = self._write_draft(decided)  # before the request is gone: the disk may be full
        if not self._remove(self._file_name(request)):
            self._remove(draft)
            return False
        self._publish_draft(draft, decided)
        return True

    # -------------------------------------------------------------- files

    def _file_name(self, request: ApprovalRequest) -> str:
        return f"{request.match}.{request.id}.{request.state}"

    def _list_files(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except OSError as failure:
            raise make_unavailable_error(_describe_os_error(failure)) from None

    def _iter_requests(self, state: str, match: str | None = None) -> Iterator[ApprovalRequest]:
        """The requests in that state that are what they say they are, and whose time it is."""
        now = read_clocks()
        for name in self._list_files():
            head, _, rest = name.partition(".")
            if rest.endswith(f".{state}") and match in (None, head):
                found = self._load(name)
                if found is not None and _is_current(found, now):
                    yield found

    def _load(self, name: str) -> ApprovalRequest | None:
        """A request, if a file is one; what was not sealed by us is none."""
        from hmac import compare_digest

        try:
            file = os.open(os.path.join(self._folder, name), os.O_RDONLY | _READ_FLAGS)
        except OSError as failure:
            if failure.errno in _NOT_A_FILE_ERRNOS:
                return None
            raise make_unavailable_error(_describe_os_error(failure)) from None
        try:
            is_regular_file = os.fstat(file).st_mode & 0o170000 == 0o100000
            data = os.read(file, _MAX_FILE_BYTES) if is_regular_file else b""
        except OSError as failure:
            raise make_unavailable_error(_describe_os_error(failure)) from None
        finally:
            os.close(file)
        body, _, signature = data.rpartition(b"\n")
        if not compare_digest(self._sign(body), signature):
            return None
        from json import loads

        try:
            request = ApprovalRequest(**loads(body))
        except TypeError:  # written by another version of ours
            return None
        return request if self._file_name(request) == name else None

    def _write_draft(self, request: ApprovalRequest) -> str:
        """A file with the request in it that is not in its place yet: nobody sees the half of one.

        Arguments that are too large to be read are not shown; the seal is over what they are.
        """
        from tooli.text.json_encoder import encode

        fields = {name: getattr(request, name) for name in ApprovalRequest.__match_args__}
        body = encode(fields, [])
        if len(body) > _MAX_FILE_BYTES // 2:
            placeholder = f"({len(body)} bytes: too much to be shown)"
            body = encode({**fields, "arguments": placeholder, "plan": None}, [])
        data = body + b"\n" + self._sign(body)
        draft = f"{os.urandom(8).hex()}.draft"
        try:
            path = os.path.join(self._folder, draft)
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, 0o600)
            try:
                while data:
                    data = data[os.write(file, data) :]
            finally:
                os.close(file)
        except OSError as failure:
            self._remove(draft)
            raise make_unavailable_error(_describe_os_error(failure)) from None
        return draft

    def _publish_draft(self, draft: str, request: ApprovalRequest) -> None:
        target = os.path.join(self._folder, self._file_name(request))
        try:
            os.rename(os.path.join(self._folder, draft), target)
        except OSError as failure:
            raise make_unavailable_error(_describe_os_error(failure)) from None

    def _remove(self, name: str) -> bool:
        """Whether it was this process that removed the file."""
        try:
            os.unlink(os.path.join(self._folder, name))
        except FileNotFoundError:
            return False
        except OSError as failure:
            raise make_unavailable_error(_describe_os_error(failure)) from None
        return True

    def _purge_expired(self) -> None:
        """Remove what is of no use any more; refuse where more waits than anybody reads."""
        now = time.time()
        pending_count = 0
        for name in self._list_files():
            path = os.path.join(self._folder, name)
            try:
                age = now - os.stat(path).st_mtime
                if age > _FILE_RETENTION_SECONDS:
                    os.unlink(path)
                elif name.endswith(".pending") and age < APPROVAL_TTL_SECONDS:
                    pending_count += 1
            except OSError:
                continue
        if pending_count >= MAX_PENDING_REQUESTS:
            raise make_unavailable_error(
                f"{pending_count} requests wait already: a human has to look at them first"
            )

    def _sign(self, body: bytes) -> bytes:
        return digest(body, 32, self._key).hex().encode()


_BINARY = getattr(os, "O_BINARY", 0)
_READ_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY
_NOT_A_FILE_ERRNOS = (ENOENT, ELOOP, ENXIO)  # it has gone; a link, a socket: nothing that we made


def _check_private_folder(folder: str) -> None:
    """Refuse a folder into which others could put something."""
    if not hasattr(os, "getuid"):
        return
    found = os.stat(folder)
    if found.st_uid != os.getuid():
        raise make_unavailable_error(f"{folder} belongs to another user")
    if found.st_mode & 0o022:
        raise make_unavailable_error(f"others may write to {folder}: chmod go-w")


def _used_file_name(request: ApprovalRequest) -> str:
    return f"{request.id}.used"


def _sort_key(request: ApprovalRequest) -> tuple[float, str]:
    return request.created, request.id


def _is_current(request: ApprovalRequest, now: ClockReading) -> bool:
    """Whether it is time for it: not before it was made, not after its end, by either clock."""
    if request.boot != now.boot:
        return False
    by_clock = 0 <= now.clock - request.created < APPROVAL_TTL_SECONDS
    return by_clock and 0 <= now.ticks - request.ticks < APPROVAL_TTL_SECONDS


def generate_code(length: int) -> str:
    """Letters that are easy to type and hard to guess."""
    return "".join([_CODE_ALPHABET[byte & 31] for byte in os.urandom(length)])


def _describe_os_error(failure: OSError) -> str:
    prefix = f"{failure.filename}: " if failure.filename else ""
    return f"{prefix}{(failure.strerror or 'it failed').lower()}"
