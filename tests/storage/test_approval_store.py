"""Requests for approval, as files: sealed, in time, used once; and what nobody gets past."""

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

FACTS: dict[str, Any] = {
    "app": "files",
    "tool": "files.delete",
    "arguments": {"path": "a"},
    "plan": None,
    "effects": ["destructive"],
    "caller": "somebody (cli)",
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
    return store.digest_parts("files.delete", "a")


def files(home: Path) -> list[Path]:
    return sorted((home / "approvals").iterdir())


def granted(store: ApprovalStore, match: str) -> ApprovalRequest:
    request = store.request_approval(match, **FACTS)
    assert store.decide(request, "granted")
    return request


class TestOneRequest:
    def test_it_waits_and_is_found_again(self, store: ApprovalStore, match: str) -> None:
        first = store.request_approval(match, **FACTS)
        assert store.request_approval(match, **FACTS) == first
        assert store.list_pending("files") == [first]
        assert store.list_pending("other") == []
        assert first.expires == first.created + APPROVAL_TTL_SECONDS

    def test_nothing_is_granted_by_waiting(self, store: ApprovalStore, match: str) -> None:
        store.request_approval(match, **FACTS)
        assert store.claim_grant(match) is None
        assert store.claim_denial(match) is None

    def test_a_grant_is_used_once(self, store: ApprovalStore, match: str) -> None:
        request = granted(store, match)
        taken = store.claim_grant(match)
        assert taken is not None
        assert taken.id == request.id
        assert store.claim_grant(match) is None
        assert store.list_pending("files") == []

    def test_a_grant_is_for_one_match(self, store: ApprovalStore, match: str) -> None:
        granted(store, match)
        assert store.claim_grant(store.digest_parts("files.delete", "b")) is None
        assert store.claim_grant(match) is not None

    def test_a_denial_is_told_once(self, store: ApprovalStore, match: str) -> None:
        assert store.decide(store.request_approval(match, **FACTS), "denied")
        assert store.claim_grant(match) is None
        assert store.claim_denial(match) is not None
        assert store.claim_denial(match) is None

    def test_one_answer_to_one_request(self, store: ApprovalStore, match: str) -> None:
        request = store.request_approval(match, **FACTS)
        assert store.decide(request, "denied")
        assert not store.decide(request, "granted")
        assert store.claim_grant(match) is None

    def test_after_it_was_used_another_one_is_asked(self, store: ApprovalStore, match: str) -> None:
        request = granted(store, match)
        store.claim_grant(match)
        again = store.request_approval(match, **FACTS)
        assert again.id != request.id
        assert store.decide(again, "granted")
        assert store.claim_grant(match) is not None

    @pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
    def test_nobody_else_reads_them(self, store: ApprovalStore, match: str, home: Path) -> None:
        granted(store, match)
        store.claim_grant(match)
        store.request_approval(match, **FACTS)
        for path in (*files(home), home / "approvals.key"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE((home / "approvals").stat().st_mode) == 0o700

    def test_arguments_that_are_too_large_are_not_shown_and_still_bound(
        self, store: ApprovalStore, match: str
    ) -> None:
        request = store.request_approval(match, **{**FACTS, "arguments": {"path": "x" * 1_000_000}})
        (waiting,) = store.list_pending("files")
        assert waiting.id == request.id
        assert "too much" in waiting.arguments
        assert store.decide(waiting, "granted")
        assert store.claim_grant(match) is not None


class TestForging:
    def test_a_file_without_the_seal(self, store: ApprovalStore, match: str, home: Path) -> None:
        request = store.request_approval(match, **FACTS)
        (path,) = files(home)
        body, _, seal = path.read_bytes().rpartition(b"\n")
        target = home / "approvals" / f"{match}.{request.id}.granted"
        changed = body.replace(b'"pending"', b'"granted"')
        assert changed != body
        for data in (
            *(body + b"\n" + seal, changed + b"\n" + seal, changed, changed + b"\n", b"", b"\n"),
            *(changed + b"\n" + b"0" * 64, b"\xff" * 300, b"{}\n" + seal),
        ):
            target.write_bytes(data)
            assert store.claim_grant(match) is None, data

    def test_a_seal_of_another_key(
        self, store: ApprovalStore, match: str, home: Path, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "mine"))
        granted(ApprovalStore(), match)
        for path in files(tmp_path / "mine"):
            shutil.copy(path, home / "approvals")
        assert store.claim_grant(match) is None

    def test_a_grant_for_another_call_by_another_name(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        other = store.digest_parts("files.delete", "b")
        request = granted(store, other)
        path = home / "approvals" / f"{other}.{request.id}.granted"
        shutil.copy(path, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.claim_grant(match) is None

    def test_a_pending_or_denied_file_by_another_name(
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

    def test_a_copy_that_is_put_back(self, store: ApprovalStore, match: str, home: Path) -> None:
        request = granted(store, match)
        path = home / "approvals" / f"{match}.{request.id}.granted"
        kept = path.read_bytes()
        assert store.claim_grant(match) is not None
        for _ in range(3):
            path.write_bytes(kept)
            assert store.claim_grant(match) is None

    @pytest.mark.skipif(os.name == "nt", reason="links are POSIX's")
    def test_links_and_folders_are_not_ours(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        request = granted(store, match)
        path = home / "approvals" / f"{match}.{request.id}.granted"
        path.rename(home / "elsewhere")
        path.symlink_to(home / "elsewhere")
        (home / "approvals" / f"{match}.abcd-abcd.granted").mkdir()
        os.mkfifo(home / "approvals" / f"{match}.efgh-efgh.granted")
        assert store.claim_grant(match) is None

    def test_a_new_key_makes_old_files_worthless(
        self, store: ApprovalStore, match: str, home: Path
    ) -> None:
        granted(store, match)
        (home / "approvals.key").unlink()
        assert ApprovalStore().claim_grant(match) is None

    def test_what_another_version_wrote(self, store: ApprovalStore, match: str, home: Path) -> None:
        body = b'{"id":"abcd-abcd","unknown":1}'
        path = home / "approvals" / f"{match}.abcd-abcd.granted"
        path.write_bytes(body + b"\n" + store._sign(body))
        assert store.claim_grant(match) is None


class TestTime:
    """By the clock and since the machine was started: both have to agree."""

    @pytest.mark.parametrize(
        ("clock", "ticks", "boot", "holds"),
        [
            (0, 0, "here", True),
            (APPROVAL_TTL_SECONDS - 1, APPROVAL_TTL_SECONDS - 1, "here", True),
            (APPROVAL_TTL_SECONDS, APPROVAL_TTL_SECONDS, "here", False),  # its time is over
            (10 * APPROVAL_TTL_SECONDS, 10 * APPROVAL_TTL_SECONDS, "here", False),
            (1, APPROVAL_TTL_SECONDS + 1, "here", False),  # the clock was set back
            (-3600, 1, "here", False),  # it was set back behind the beginning
            (APPROVAL_TTL_SECONDS + 1, 1, "here", False),  # it was set forward
            (1, -1, "here", False),
            (1, 1, "there", False),  # the machine was started anew
        ],
    )
    @pytest.mark.parametrize("state", ["pending", "granted", "denied"])
    def test_games(
        self,
        clock: float,
        ticks: float,
        boot: str,
        holds: bool,
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
        assert bool(store.list_pending("files")) is (holds and state == "pending")
        assert (store.claim_denial(match) is not None) is (holds and state == "denied")
        assert (store.claim_grant(match) is not None) is (holds and state == "granted")

    def test_the_real_moment_moves_on(self) -> None:
        first, second = approval_store.read_clocks(), approval_store.read_clocks()
        assert (first.boot, first.ticks <= second.ticks) == (second.boot, True)

    def test_a_request_whose_time_is_over_is_asked_anew(
        self, store: ApprovalStore, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = store.request_approval(match, **FACTS)
        now = approval_store.read_clocks()
        later = ClockReading(
            now.clock + APPROVAL_TTL_SECONDS, now.ticks + APPROVAL_TTL_SECONDS, now.boot
        )
        monkeypatch.setattr(approval_store, "read_clocks", lambda: later)
        assert store.request_approval(match, **FACTS).id != first.id

    def test_what_is_old_goes(self, store: ApprovalStore, match: str, home: Path) -> None:
        granted(store, match)
        store.claim_grant(match)
        for path in files(home):
            os.utime(path, (1, 1))
        store.request_approval(match, **FACTS)
        (left,) = files(home)
        assert left.suffix == ".pending"


UNUSED = {"take": ("write", "rename", "unlink"), "ask": ("unlink",), "settle": ("listdir",)}
"""What need not work for a thing to be done."""


class TestTrouble:
    """What cannot be kept or checked is not granted: E2104, and no traceback."""

    def test_nobody_reads_thousands(self, store: ApprovalStore, match: str, home: Path) -> None:
        for number in range(MAX_PENDING_REQUESTS):
            (home / "approvals" / f"{number}.x.pending").touch()
        with pytest.raises(AuthError, match="wait already") as refused:
            store.request_approval(match, **FACTS)
        assert refused.value.code == "E2104"

    def test_no_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file" / "state"))
        with pytest.raises(AuthError) as refused:
            ApprovalStore()
        assert (refused.value.code, refused.value.exit_code) == ("E2104", 30)

    @pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
    @pytest.mark.parametrize("which", ["", "approvals"])
    def test_a_folder_that_others_write_to(
        self, store: ApprovalStore, home: Path, which: str
    ) -> None:
        (home / which).chmod(0o777)
        with pytest.raises(AuthError, match="others may write"):
            ApprovalStore()

    def test_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tooli.storage.signing.load_or_create_key", lambda name: None)
        with pytest.raises(AuthError, match="no key") as refused:
            ApprovalStore()
        assert refused.value.code == "E2104"

    @pytest.mark.parametrize("broken", ["open", "write", "rename", "listdir", "unlink"])
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
    def test_a_disk_that_fails(
        self,
        broken: str,
        number: int,
        store: ApprovalStore,
        match: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        waiting = store.request_approval(store.digest_parts("waits"), **FACTS)
        granted(store, match)

        def fail(*_: Any, **__: Any) -> Any:
            raise OSError(number, os.strerror(number), "somewhere")

        attempts = {
            "take": lambda: store.claim_grant(match),
            "ask": lambda: store.request_approval(store.digest_parts("another"), **FACTS),
            "settle": lambda: store.decide(waiting, "granted"),
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

    def test_a_grant_is_not_taken_where_its_use_cannot_be_noted(
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

    def test_a_full_disk_leaves_the_request(
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
