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
from tooli.state import approvals
from tooli.state.approvals import LASTS, MOST, Approvals, Moment, Request

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
def store() -> Approvals:
    return Approvals()


@pytest.fixture
def match(store: Approvals) -> str:
    return store.bind("files.delete", "a")


def files(home: Path) -> list[Path]:
    return sorted((home / "approvals").iterdir())


def granted(store: Approvals, match: str) -> Request:
    request = store.ask(match, **FACTS)
    assert store.settle(request, "granted")
    return request


class TestOneRequest:
    def test_it_waits_and_is_found_again(self, store: Approvals, match: str) -> None:
        first = store.ask(match, **FACTS)
        assert store.ask(match, **FACTS) == first
        assert store.waiting("files") == [first]
        assert store.waiting("other") == []
        assert first.expires == first.created + LASTS

    def test_nothing_is_granted_by_waiting(self, store: Approvals, match: str) -> None:
        store.ask(match, **FACTS)
        assert store.take(match) is None
        assert store.take_denial(match) is None

    def test_a_grant_is_used_once(self, store: Approvals, match: str) -> None:
        request = granted(store, match)
        taken = store.take(match)
        assert taken is not None
        assert taken.id == request.id
        assert store.take(match) is None
        assert store.waiting("files") == []

    def test_a_grant_is_for_one_match(self, store: Approvals, match: str) -> None:
        granted(store, match)
        assert store.take(store.bind("files.delete", "b")) is None
        assert store.take(match) is not None

    def test_a_denial_is_told_once(self, store: Approvals, match: str) -> None:
        assert store.settle(store.ask(match, **FACTS), "denied")
        assert store.take(match) is None
        assert store.take_denial(match) is not None
        assert store.take_denial(match) is None

    def test_one_answer_to_one_request(self, store: Approvals, match: str) -> None:
        request = store.ask(match, **FACTS)
        assert store.settle(request, "denied")
        assert not store.settle(request, "granted")
        assert store.take(match) is None

    def test_after_it_was_used_another_one_is_asked(self, store: Approvals, match: str) -> None:
        request = granted(store, match)
        store.take(match)
        again = store.ask(match, **FACTS)
        assert again.id != request.id
        assert store.settle(again, "granted")
        assert store.take(match) is not None

    @pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
    def test_nobody_else_reads_them(self, store: Approvals, match: str, home: Path) -> None:
        granted(store, match)
        store.take(match)
        store.ask(match, **FACTS)
        for path in (*files(home), home / "approvals.key"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert stat.S_IMODE((home / "approvals").stat().st_mode) == 0o700

    def test_arguments_that_are_too_large_are_not_shown_and_still_bound(
        self, store: Approvals, match: str
    ) -> None:
        request = store.ask(match, **{**FACTS, "arguments": {"path": "x" * 1_000_000}})
        (waiting,) = store.waiting("files")
        assert waiting.id == request.id
        assert "too much" in waiting.arguments
        assert store.settle(waiting, "granted")
        assert store.take(match) is not None


class TestForging:
    def test_a_file_without_the_seal(self, store: Approvals, match: str, home: Path) -> None:
        request = store.ask(match, **FACTS)
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
            assert store.take(match) is None, data

    def test_a_seal_of_another_key(
        self, store: Approvals, match: str, home: Path, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "mine"))
        granted(Approvals(), match)
        for path in files(tmp_path / "mine"):
            shutil.copy(path, home / "approvals")
        assert store.take(match) is None

    def test_a_grant_for_another_call_by_another_name(
        self, store: Approvals, match: str, home: Path
    ) -> None:
        other = store.bind("files.delete", "b")
        request = granted(store, other)
        path = home / "approvals" / f"{other}.{request.id}.granted"
        shutil.copy(path, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.take(match) is None

    def test_a_pending_or_denied_file_by_another_name(
        self, store: Approvals, match: str, home: Path
    ) -> None:
        request = store.ask(match, **FACTS)
        (path,) = files(home)
        shutil.copy(path, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.take(match) is None
        store.settle(request, "denied")
        denied = home / "approvals" / f"{match}.{request.id}.denied"
        shutil.copy(denied, home / "approvals" / f"{match}.{request.id}.granted")
        assert store.take(match) is None

    def test_a_copy_that_is_put_back(self, store: Approvals, match: str, home: Path) -> None:
        request = granted(store, match)
        path = home / "approvals" / f"{match}.{request.id}.granted"
        kept = path.read_bytes()
        assert store.take(match) is not None
        for _ in range(3):
            path.write_bytes(kept)
            assert store.take(match) is None

    @pytest.mark.skipif(os.name == "nt", reason="links are POSIX's")
    def test_links_and_folders_are_not_ours(self, store: Approvals, match: str, home: Path) -> None:
        request = granted(store, match)
        path = home / "approvals" / f"{match}.{request.id}.granted"
        path.rename(home / "elsewhere")
        path.symlink_to(home / "elsewhere")
        (home / "approvals" / f"{match}.abcd-abcd.granted").mkdir()
        os.mkfifo(home / "approvals" / f"{match}.efgh-efgh.granted")
        assert store.take(match) is None

    def test_a_new_key_makes_old_files_worthless(
        self, store: Approvals, match: str, home: Path
    ) -> None:
        granted(store, match)
        (home / "approvals.key").unlink()
        assert Approvals().take(match) is None

    def test_what_another_version_wrote(self, store: Approvals, match: str, home: Path) -> None:
        body = b'{"id":"abcd-abcd","unknown":1}'
        path = home / "approvals" / f"{match}.abcd-abcd.granted"
        path.write_bytes(body + b"\n" + store._seal(body))
        assert store.take(match) is None


class TestTime:
    """By the clock and since the machine was started: both have to agree."""

    @pytest.mark.parametrize(
        ("clock", "ticks", "boot", "holds"),
        [
            (0, 0, "here", True),
            (LASTS - 1, LASTS - 1, "here", True),
            (LASTS, LASTS, "here", False),  # its time is over
            (10 * LASTS, 10 * LASTS, "here", False),
            (1, LASTS + 1, "here", False),  # the clock was set back
            (-3600, 1, "here", False),  # it was set back behind the beginning
            (LASTS + 1, 1, "here", False),  # it was set forward
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
        store: Approvals,
        match: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        now = Moment(1_000_000.0, 5000.0, "here")
        monkeypatch.setattr(approvals, "moment", lambda: now)
        request = store.ask(match, **FACTS)
        if state != "pending":
            store.settle(request, state)
        later = Moment(now.clock + clock, now.ticks + ticks, boot)
        monkeypatch.setattr(approvals, "moment", lambda: later)
        assert bool(store.waiting("files")) is (holds and state == "pending")
        assert (store.take_denial(match) is not None) is (holds and state == "denied")
        assert (store.take(match) is not None) is (holds and state == "granted")

    def test_the_real_moment_moves_on(self) -> None:
        first, second = approvals.moment(), approvals.moment()
        assert (first.boot, first.ticks <= second.ticks) == (second.boot, True)

    def test_a_request_whose_time_is_over_is_asked_anew(
        self, store: Approvals, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = store.ask(match, **FACTS)
        now = approvals.moment()
        later = Moment(now.clock + LASTS, now.ticks + LASTS, now.boot)
        monkeypatch.setattr(approvals, "moment", lambda: later)
        assert store.ask(match, **FACTS).id != first.id

    def test_what_is_old_goes(self, store: Approvals, match: str, home: Path) -> None:
        granted(store, match)
        store.take(match)
        for path in files(home):
            os.utime(path, (1, 1))
        store.ask(match, **FACTS)
        (left,) = files(home)
        assert left.suffix == ".pending"


UNUSED = {"take": ("write", "rename", "unlink"), "ask": ("unlink",), "settle": ("listdir",)}
"""What need not work for a thing to be done."""


class TestTrouble:
    """What cannot be kept or checked is not granted: E2104, and no traceback."""

    def test_nobody_reads_thousands(self, store: Approvals, match: str, home: Path) -> None:
        for number in range(MOST):
            (home / "approvals" / f"{number}.x.pending").touch()
        with pytest.raises(AuthError, match="wait already") as refused:
            store.ask(match, **FACTS)
        assert refused.value.code == "E2104"

    def test_no_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file" / "state"))
        with pytest.raises(AuthError) as refused:
            Approvals()
        assert (refused.value.code, refused.value.exit_code) == ("E2104", 30)

    @pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
    @pytest.mark.parametrize("which", ["", "approvals"])
    def test_a_folder_that_others_write_to(self, store: Approvals, home: Path, which: str) -> None:
        (home / which).chmod(0o777)
        with pytest.raises(AuthError, match="others may write"):
            Approvals()

    def test_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tooli.state.keys.key_file", lambda name: None)
        with pytest.raises(AuthError, match="no key") as refused:
            Approvals()
        assert refused.value.code == "E2104"

    @pytest.mark.parametrize("broken", ["open", "write", "rename", "listdir", "unlink"])
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
    def test_a_disk_that_fails(
        self,
        broken: str,
        number: int,
        store: Approvals,
        match: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        waiting = store.ask(store.bind("waits"), **FACTS)
        granted(store, match)

        def fail(*_: Any, **__: Any) -> Any:
            raise OSError(number, os.strerror(number), "somewhere")

        attempts = {
            "take": lambda: store.take(match),
            "ask": lambda: store.ask(store.bind("another"), **FACTS),
            "settle": lambda: store.settle(waiting, "granted"),
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
        self, store: Approvals, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        granted(store, match)
        real = os.open

        def full(path: Any, flags: int, *more: Any) -> int:
            if str(path).endswith(".used"):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(path, flags, *more)

        monkeypatch.setattr(os, "open", full)
        with pytest.raises(AuthError, match="no space left"):
            store.take(match)

    def test_a_full_disk_leaves_the_request(
        self, store: Approvals, match: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request = store.ask(match, **FACTS)

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(AuthError, match="no space left"):
                store.settle(request, "granted")
        assert store.waiting("files") == [request]
        assert store.settle(request, "granted")
