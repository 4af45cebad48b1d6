"""Approval requests: signatures, expiry, single use, and failures of the file system."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from tooli.errors import AuthError
from tooli.storage import approval_store
from tooli.storage.approval_store import (
    APPROVAL_TTL_SECONDS,
    MAX_PENDING_REQUESTS,
    ApprovalRequest,
    ApprovalStore,
    ClockReading,
)
from tooli.storage.signing import sign_hex

FACTS: dict[str, Any] = {
    "app": "files",
    "tool": "files.delete",
    "parts": {"the arguments": "digest"},
    "folder": "/work",
    "arguments": {"path": "a"},
    "files": {},
    "plan": None,
    "effects": ["destructive"],
    "caller": "an unnamed caller (cli)",
    "danger": None,
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def store() -> ApprovalStore:
    return ApprovalStore()


@pytest.fixture
def match(store: ApprovalStore) -> str:
    return store.digest_bytes(b"files.delete a")


def files(home: Path) -> list[Path]:
    return sorted((home / "approvals").iterdir())


def granted(store: ApprovalStore, match: str) -> ApprovalRequest:
    request = store.request_approval(match, **FACTS)
    assert store.decide(request, "granted")
    return request


class TestRequests:
    def test_pending_request_is_reused(self, store: ApprovalStore, match: str) -> None:
        first = store.request_approval(match, **FACTS)
        assert store.request_approval(match, **FACTS) == first
        assert store.list_pending("files") == [first]
        assert store.list_pending("other") == []
        assert first.expires == first.created + APPROVAL_TTL_SECONDS

    def test_pending_request_grants_nothing(self, store: ApprovalStore, match: str) -> None:
        store.request_approval(match, **FACTS)
        assert store.claim_grant(match) is None
        assert store.claim_denial(match) is None

    def test_grant_is_used_once(self, store: ApprovalStore, match: str) -> None:
        request = granted(store, match)
        claimed = store.claim_grant(match)
        assert claimed is not None
        assert claimed.id == request.id
        assert store.claim_grant(match) is None
        assert store.list_pending("files") == []

    def test_grant_is_not_claimed_by_another_call(self, store: ApprovalStore, match: str) -> None:
        granted(store, match)
        assert store.claim_grant(store.digest_bytes(b"files.delete b")) is None
        assert store.claim_grant(match) is not None

    def test_denial_is_returned_once(self, store: ApprovalStore, match: str) -> None:
        assert store.decide(store.request_approval(match, **FACTS), "denied")
        assert store.claim_grant(match) is None
        assert store.claim_denial(match) is not None
        assert store.claim_denial(match) is None

    def test_request_is_decided_once(self, store: ApprovalStore, match: str) -> None:
        request = store.request_approval(match, **FACTS)
        assert store.decide(request, "denied")
        assert not store.decide(request, "granted")
        assert store.claim_grant(match) is None

    def test_new_request_after_used_grant(self, store: ApprovalStore, match: str) -> None:
        request = granted(store, match)
        store.claim_grant(match)
        again = store.request_approval(match, **FACTS)
        assert again.id != request.id
        assert store.decide(again, "granted")
        assert store.claim_grant(match) is not None

    @pytest.mark.skipif(os.name == "nt", reason="needs POSIX file modes")
    def test_files_are_private(self, store: ApprovalStore, match: str, home: Path) -> None:
        granted(store, match)
        store.claim_grant(match)
        store.request_approval(match, **FACTS)
        for path in (*files(home), home / "approvals.key"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE((home / "approvals").stat().st_mode) == 0o700

    def test_request_that_is_too_large_to_show_is_refused(
        self, store: ApprovalStore, match: str
    ) -> None:
        with pytest.raises(AuthError) as caught:
            store.request_approval(match, **{**FACTS, "arguments": {"path": "x" * 1_000_000}})
        assert caught.value.code == "E2104"
        assert store.list_pending("files") == []


class TestForgery:
    def test_unsigned_file_is_ignored(self, store: ApprovalStore, match: str, home: Path) -> None:
        request = store.request_approval(match, **FACTS)
        (path,) = files(home)
        body, _, signature = path.read_bytes().rpartition(b"\n")
        target = home / "approvals" / f"{match}.{request.id}.granted"
        changed = body.replace(b'"pending"', b'"granted"')
        assert changed != body
        for data in (
            *(
                body + b"\n" + signature,
                changed + b"\n" + signature,
                changed,
                changed + b"\n",
                b"",
                b"\n",
            ),
            *(changed + b"\n" + b"0" * 64, b"\xff" * 300, b"{}\n" + signature),
        ):
            target.write_bytes(data)
            assert store.claim_grant(match) is None, data

    def test_signature_of_another_key_is_ignored(
        self, store: ApprovalStore, match: str, home: Path, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "other"))
        granted(ApprovalStore(), match)
        for path in files(tmp_path / "other"):
            shutil.copy(path, home / "approvals")
        assert store.claim_grant(match) is None

    def test_renamed_grant_is_ignored(self, store: ApprovalStore, match: str, home: Path) -> None:
        other = store.digest_bytes(b"files.delete b")
        request = granted(store, other)
        path = home / "approvals" / f"{other}.{request.id}.granted"
        shutil.copy(path, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.claim_grant(match) is None

    def test_renamed_pending_or_denied_file_is_ignored(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        request = store.request_approval(match, **FACTS)
        (path,) = files(home)
        shutil.copy(path, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.claim_grant(match) is None
        store.decide(request, "denied")
        denied = home / "approvals" / f"{match}.{request.id}.denied"
        shutil.copy(denied, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.claim_grant(match) is None

    def test_restored_grant_is_not_claimed(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        request = granted(store, match)
        path = home / "approvals" / f"{match}.{request.id}.granted"
        data = path.read_bytes()
        assert store.claim_grant(match) is not None
        for _ in range(3):
            path.write_bytes(data)
            assert store.claim_grant(match) is None

    @pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")
    def test_links_and_folders_are_ignored(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        request = granted(store, match)
        path = home / "approvals" / f"{match}.{request.id}.granted"
        path.rename(home / "elsewhere")
        path.symlink_to(home / "elsewhere")
        (home / "approvals" / f"{match}.abcd-abcd.granted").mkdir()
        os.mkfifo(home / "approvals" / f"{match}.efgh-efgh.granted")
        assert store.claim_grant(match) is None

    def test_new_key_invalidates_old_files(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        granted(store, match)
        (home / "approvals.key").unlink()
        assert ApprovalStore().claim_grant(match) is None

    def test_file_of_another_version_is_ignored(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        body = b'{"id":"abcd-abcd","unknown":1}'
        path = home / "approvals" / f"{match}.abcd-abcd.granted"
        path.write_bytes(body + b"\n" + sign_hex(body, store._key, 32))
        assert store.claim_grant(match) is None


class TestExpiry:
    """Requests expire by the system clock and by the time since the last boot."""

    @pytest.mark.parametrize(
        ("clock", "ticks", "boot", "valid"),
        [
            (0, 0, "here", True),
            (APPROVAL_TTL_SECONDS - 1, APPROVAL_TTL_SECONDS - 1, "here", True),
            (APPROVAL_TTL_SECONDS, APPROVAL_TTL_SECONDS, "here", False),  # expired
            (10 * APPROVAL_TTL_SECONDS, 10 * APPROVAL_TTL_SECONDS, "here", False),
            (1, APPROVAL_TTL_SECONDS + 1, "here", False),  # the clock was set back
            (-3600, 1, "here", False),  # the clock was set back to before the request
            (APPROVAL_TTL_SECONDS + 1, 1, "here", False),  # the clock was set forward
            (1, -1, "here", False),
            (1, 1, "there", False),  # the machine was restarted
        ],
    )
    @pytest.mark.parametrize("state", ["pending", "granted", "denied"])
    def test_requests_and_decisions_expire(
        self,
        clock: float,
        ticks: float,
        boot: str,
        valid: bool,
        state: str,
        store: ApprovalStore,
        match: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        now = ClockReading(1_000_000.0, 5000.0, "here")
        monkeypatch.setattr(approval_store, "read_clocks", lambda: now)
        request = store.request_approval(match, **FACTS)
        if state != "pending":
            store.decide(request, state)
        later = ClockReading(now.clock + clock, now.ticks + ticks, boot)
        monkeypatch.setattr(approval_store, "read_clocks", lambda: later)
        assert bool(store.list_pending("files")) is (valid and state == "pending")
        assert (store.claim_denial(match) is not None) is (valid and state == "denied")
        assert (store.claim_grant(match) is not None) is (valid and state == "granted")

    def test_clock_ticks_never_decrease(self) -> None:
        first, second = approval_store.read_clocks(), approval_store.read_clocks()
        assert (first.boot, first.ticks <= second.ticks) == (second.boot, True)

    def test_expired_request_is_replaced(
        self, store: ApprovalStore, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = store.request_approval(match, **FACTS)
        now = approval_store.read_clocks()
        later = ClockReading(
            now.clock + APPROVAL_TTL_SECONDS, now.ticks + APPROVAL_TTL_SECONDS, now.boot
        )
        monkeypatch.setattr(approval_store, "read_clocks", lambda: later)
        assert store.request_approval(match, **FACTS).id != first.id

    def test_old_files_are_deleted(self, store: ApprovalStore, match: str, home: Path) -> None:
        granted(store, match)
        store.claim_grant(match)
        for path in files(home):
            os.utime(path, (1, 1))
        store.request_approval(match, **FACTS)
        (left,) = files(home)
        assert left.suffix == ".pending"


UNUSED = {"claim": ("write", "rename", "unlink"), "ask": ("unlink",), "decide": ("listdir",)}
"""Functions of `os` that each operation does not call."""


class TestUnavailableStore:
    """A request that cannot be stored or checked is not granted: E2104."""

    def test_number_of_pending_requests_is_limited(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        for number in range(MAX_PENDING_REQUESTS):
            (home / "approvals" / f"{number}.x.pending").touch()
        with pytest.raises(AuthError, match="requests are pending") as refused:
            store.request_approval(match, **FACTS)
        assert refused.value.code == "E2104"

    def test_one_caller_leaves_room_for_others(
        self, store: ApprovalStore, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(approval_store, "MAX_PENDING_REQUESTS_PER_CALLER", 3)
        monkeypatch.setattr(approval_store, "MAX_PENDING_REQUESTS", 5)
        matches = [store.digest_bytes(b"%d" % i) for i in range(9)]
        for i in range(3):
            store.request_approval(matches[i], "mallory", **FACTS)
        with pytest.raises(AuthError, match="3 requests of this caller are pending") as refused:
            store.request_approval(matches[3], "mallory", **FACTS)
        assert refused.value.suggestion is not None
        assert "TOOLI_STATE_DIR" not in refused.value.suggestion.fix
        assert store.request_approval(matches[0], "mallory", **FACTS).state == "pending"
        bob = store.request_approval(matches[4], "bob", **FACTS)
        assert "bob" not in repr(bob)
        store.request_approval(matches[5], "bob", **FACTS)
        with pytest.raises(AuthError, match="5 requests are pending"):
            store.request_approval(matches[6], "bob", **FACTS)
        assert store.decide(bob, "denied")
        store.request_approval(matches[6], "bob", **FACTS)

    def test_uncreatable_state_directory_is_rejected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file" / "state"))
        with pytest.raises(AuthError) as refused:
            ApprovalStore()
        assert (refused.value.code, refused.value.exit_code) == ("E2104", 30)

    @pytest.mark.skipif(os.name == "nt", reason="needs POSIX file modes")
    @pytest.mark.parametrize("which", ["", "approvals"])
    def test_folder_writable_by_others_is_rejected(
        self, store: ApprovalStore, home: Path, which: str
    ) -> None:
        (home / which).chmod(0o777)
        with pytest.raises(AuthError, match="other users can write"):
            ApprovalStore()

    def test_missing_signing_key_is_rejected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tooli.storage.approval_store.load_or_create_key", lambda name: None)
        with pytest.raises(AuthError, match="key") as refused:
            ApprovalStore()
        assert refused.value.code == "E2104"

    @pytest.mark.parametrize("broken", ["open", "write", "rename", "listdir", "unlink"])
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
    def test_disk_errors_become_auth_errors(
        self,
        broken: str,
        number: int,
        store: ApprovalStore,
        match: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        pending = store.request_approval(store.digest_bytes(b"waits"), **FACTS)
        granted(store, match)

        def fail(*_: Any, **__: Any) -> Any:
            raise OSError(number, os.strerror(number), "somewhere")

        attempts = {
            "claim": lambda: store.claim_grant(match),
            "ask": lambda: store.request_approval(store.digest_bytes(b"another"), **FACTS),
            "decide": lambda: store.decide(pending, "granted"),
        }
        for name, attempt in attempts.items():
            with monkeypatch.context() as patch:
                patch.setattr(os, broken, fail)
                if broken in UNUSED[name]:
                    attempt()
                    continue
                with pytest.raises(AuthError) as refused:
                    attempt()
            assert refused.value.code == "E2104"
            assert os.strerror(number).lower() in refused.value.message

    def test_grant_is_not_claimed_if_marker_cannot_be_written(
        self, store: ApprovalStore, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        granted(store, match)
        real = os.open

        def full(path: Any, flags: int, *more: Any) -> int:
            if str(path).endswith(".used"):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(path, flags, *more)

        monkeypatch.setattr(os, "open", full)
        with pytest.raises(AuthError, match="no space left"):
            store.claim_grant(match)

    def test_full_disk_keeps_request(
        self, store: ApprovalStore, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request = store.request_approval(match, **FACTS)

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(AuthError, match="no space left"):
                store.decide(request, "granted")
        assert store.list_pending("files") == [request]
        assert store.decide(request, "granted")


class TestRaces:
    def test_first_of_two_concurrent_requests_is_kept(
        self, store: ApprovalStore, match: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = store.request_approval(match, **FACTS)
        found = iter(((), (first,)))
        monkeypatch.setattr(store, "_iter_requests", lambda *_: iter(next(found)))
        assert store.request_approval(match, **FACTS) == first
        monkeypatch.undo()
        assert [path.name for path in files(home)] == [store._file_name(first)]

    def test_denial_claimed_by_another_process_is_not_returned(
        self, store: ApprovalStore, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert store.decide(store.request_approval(match, **FACTS), "denied")
        monkeypatch.setattr(store, "_remove", lambda name: False)
        assert store.claim_denial(match) is None


class TestCleanUp:
    def test_only_files_of_the_store_are_deleted(
        self, store: ApprovalStore, home: Path, match: str
    ) -> None:
        """The state directory is somebody's project, which has a folder `approvals`."""
        folder = home / "approvals"
        kept = ["letter.txt", "a.pending", "x.draft", "0123-4567.granted", "plan.abcd-efgh.denied"]
        kept += [f"{'0' * 32}.abcd-efgh.signed", f"{'0' * 32}.abcdefghi.granted"]
        obsolete = [f"{'0' * 32}.abcd-efgh.granted", f"{'0' * 16}.draft", "abcd-efgh.used"]
        for name in (*kept, *obsolete):
            (folder / name).write_text("x")
            os.utime(folder / name, (1, 1))
        (folder / f"{'1' * 16}.draft").symlink_to("letter.txt")
        store.request_approval(match, **FACTS)
        assert {*kept, f"{'1' * 16}.draft"} <= set(os.listdir(folder))
        assert not {*obsolete} & set(os.listdir(folder))


class TestFolderOwner:
    def test_folder_of_another_user_is_rejected(
        self, store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
        with pytest.raises(AuthError, match="belongs to another user"):
            ApprovalStore()

    def test_no_owner_check_without_getuid(
        self, store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(os, "getuid")
        ApprovalStore()
