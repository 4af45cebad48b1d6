"""Landlock: the version of the kernel, rules for paths, errors, paths without the denied ones."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.execution.forked import run_in_child

from tooli.execution.processes import prctl
from tooli.execution.sandbox import landlock
from tooli.execution.sandbox.landlock import Ruleset, paths_outside_denied
from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support
from tooli.execution.sandbox.syscalls import SandboxUnavailable

SUPPORT = detect_sandbox_support()
needs_landlock = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))
NO_NEW_PRIVS = 38


class Kernel:
    """Replaces the system calls; records the attributes and rules."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.attributes: tuple[int, ...] = ()
        self.rights: list[int] = []
        self.fail_with: dict[int, int] = {}
        self.version = 5
        monkeypatch.setattr(landlock, "syscall", self.syscall)

    def syscall(self, number: int, *args: Any) -> int:
        if number in self.fail_with:
            code = self.fail_with[number]
            raise OSError(code, os.strerror(code))
        if number == 444 and args[0] == 0:
            return self.version
        if number == 444:
            self.attributes = struct.unpack(f"={args[1] // 8}Q", args[0].raw[: args[1]])
            return os.open(os.devnull, os.O_RDONLY)
        if number == 445:
            self.rights.append(struct.unpack("=Qi", args[2].raw[:12])[0])
        return 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


# ------------------------------------------------------------------ the version of the kernel


def test_version_of_the_kernel_is_detected(kernel: Kernel) -> None:
    kernel.version = 3
    assert landlock.detect_abi() == 3


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSYS, "is missing or blocked"),
        (errno.EOPNOTSUPP, "Landlock is disabled"),
        (errno.EPERM, "Landlock: Operation not permitted"),
    ],
)
def test_reason_if_landlock_is_unavailable(kernel: Kernel, code: int, reason: str) -> None:
    kernel.fail_with[444] = code
    with pytest.raises(SandboxUnavailable, match=reason):
        landlock.detect_abi()


def test_version_zero_is_unavailable(kernel: Kernel) -> None:
    kernel.version = 0
    with pytest.raises(SandboxUnavailable, match="no ABI version"):
        landlock.detect_abi()


# ------------------------------------------------------------------ rulesets


@pytest.mark.parametrize(
    ("abi", "net", "attributes"),
    [
        (1, False, (0x1FFF,)),
        (2, False, (0x3FFF,)),
        (3, False, (0x7FFF,)),
        (4, False, (0x7FFF, 3)),
        (4, True, (0x7FFF, 0)),
        (5, False, (0xFFFF, 3)),
        (6, True, (0xFFFF, 0, 3)),
        (99, False, (0xFFFF, 3, 3)),
    ],
)
def test_attributes_match_the_version(
    kernel: Kernel, abi: int, net: bool, attributes: tuple[int, ...]
) -> None:
    Ruleset(abi, net).enforce()
    assert kernel.attributes == attributes


def test_file_gets_rights_of_files_only(kernel: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    rules = Ruleset(5, False)
    assert rules.add(str(file), landlock.READ | landlock.WRITE | landlock.DELETE)
    assert rules.add(str(tmp_path), landlock.READ | landlock.DELETE)
    assert not rules.add(str(file), landlock.DELETE)
    rules.enforce()
    assert kernel.rights == [
        landlock.READ_FILE | landlock.WRITE_FILE | landlock.TRUNCATE,
        landlock.READ | landlock.DELETE,
    ]


def test_right_that_the_version_lacks_is_left_out(kernel: Kernel, tmp_path: Path) -> None:
    rules = Ruleset(2, False)
    assert rules.add(str(tmp_path), landlock.WRITE_FILE | landlock.TRUNCATE)
    assert not rules.add(str(tmp_path), landlock.TRUNCATE)
    rules.enforce()
    assert kernel.rights == [landlock.WRITE_FILE]


def test_missing_path_gets_no_rule(kernel: Kernel, tmp_path: Path) -> None:
    rules = Ruleset(5, False)
    assert not rules.add(str(tmp_path / "missing"), landlock.READ)
    rules.enforce()
    assert kernel.rights == []


def test_symlink_gets_no_rule_unless_it_is_followed(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    rules = Ruleset(5, False)
    assert not rules.add(str(tmp_path / "link"), landlock.READ)
    assert rules.add(str(tmp_path / "link"), landlock.READ, follow_symlinks=True)
    rules.enforce()
    assert kernel.rights == [landlock.READ]


def test_resolved_path_with_a_link_on_the_way_gets_no_rule(kernel: Kernel, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "folder"
    folder.mkdir()
    (folder / "file").touch()
    (tmp_path / "link").symlink_to(folder)
    rules = Ruleset(5, False)
    assert rules.add(str(tmp_path / "link" / "file"), landlock.READ, follow_symlinks=True)
    assert not rules.add(str(tmp_path / "link" / "file"), landlock.READ)
    assert rules.add(str(folder / "file"), landlock.READ)
    rules.enforce()
    assert kernel.rights == [landlock.READ_FILE] * 2


def test_refused_ruleset_means_unavailable(kernel: Kernel) -> None:
    kernel.fail_with[444] = errno.EINVAL
    with pytest.raises(SandboxUnavailable, match="create a ruleset: Invalid argument"):
        Ruleset(5, False)


def test_refused_rule_closes_the_path(kernel: Kernel, tmp_path: Path) -> None:
    rules = Ruleset(5, False)
    kernel.fail_with[445] = errno.EINVAL
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SandboxUnavailable, match=f"a rule for {tmp_path}: Invalid argument"):
        rules.add(str(tmp_path), landlock.READ)
    assert len(os.listdir("/proc/self/fd")) == before
    rules.enforce()


def test_refused_enforcement_closes_the_ruleset(kernel: Kernel) -> None:
    before = len(os.listdir("/proc/self/fd"))
    rules = Ruleset(5, False)
    kernel.fail_with[446] = errno.EPERM
    with pytest.raises(SandboxUnavailable, match="Operation not permitted"):
        rules.enforce()
    assert len(os.listdir("/proc/self/fd")) == before


@needs_landlock
def test_kernel_enforces_the_rules(tmp_path: Path) -> None:
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)

    def work() -> None:
        rules = Ruleset(landlock.detect_abi(), False)
        assert rules.add(str(tmp_path / "inside"), landlock.READ)
        prctl(NO_NEW_PRIVS, 1)
        rules.enforce()
        assert (tmp_path / "inside/file").read_text() == "inside"
        for refused in (
            (tmp_path / "outside/file").read_text,
            (tmp_path / "inside/new").touch,
            (tmp_path / "inside/file").unlink,
        ):
            with pytest.raises(PermissionError):
                refused()

    assert run_in_child(work) == 0


# ------------------------------------------------------------------ denied paths


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Folders a, b and b/c with one file each, and a link to b."""
    for name in ("a", "b", "b/c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to("b")
    return tmp_path


def outside(tree: Path, *denied: str) -> set[str]:
    found = paths_outside_denied(str(tree), tuple(os.path.normpath(tree / path) for path in denied))
    return {os.path.relpath(path, tree) for path in found}


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        ((), {"."}),
        (("",), set()),
        (("../other",), {"."}),
        (("a",), {"b"}),
        (("b/c",), {"a", "b/file"}),
        (("a", "b/c/file"), {"b/file"}),
        (("b/missing",), {"a", "b/c", "b/file"}),
    ],
)
def test_paths_outside_denied_are_listed(
    tree: Path, denied: tuple[str, ...], expected: set[str]
) -> None:
    assert outside(tree, *denied) == expected


def test_folder_that_cannot_be_listed_is_left_out(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, path)

    monkeypatch.setattr(os, "listdir", fail)
    assert outside(tree, "a") == set()
