"""System calls of the sandbox: errors, privileges, the initial environment, seccomp."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from tests.execution.forked import run_in_child

from tooli.core.declared_capabilities import AllowedAccess
from tooli.execution.sandbox import syscalls
from tooli.execution.sandbox.syscalls import ArgumentCheck, SandboxUnavailable, SeccompRules

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def test_other_systems_and_processors_are_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert syscalls.detect_architecture() == os.uname().machine
    uname = namedtuple("uname", "machine")
    monkeypatch.setattr(os, "uname", lambda: uname("mips"))
    with pytest.raises(SandboxUnavailable, match="mips"):
        syscalls.detect_architecture()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="needs Linux"):
        syscalls.detect_architecture()


def test_failed_system_call_is_an_os_error() -> None:
    close = {"x86_64": 3, "aarch64": 57}[syscalls.detect_architecture()]
    with pytest.raises(OSError) as caught:
        syscalls.syscall(close, -1)
    assert caught.value.errno == errno.EBADF


def test_missing_c_library_means_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no library")

    monkeypatch.setattr(syscalls, "_libc", None)
    monkeypatch.setattr(ctypes, "CDLL", fail)
    with pytest.raises(SandboxUnavailable, match="no library"):
        syscalls.syscall(0)


def test_locked_down_process_gets_no_new_privileges() -> None:
    def work() -> None:
        syscalls.lock_down_process()
        with open("/proc/self/status") as file:
            assert "NoNewPrivs:\t1" in file.read()

    assert run_in_child(work) == 0


def test_refused_prctl_means_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        monkeypatch.setattr(syscalls, "prctl", lambda option, value: False)
        with pytest.raises(SandboxUnavailable, match="prctl"):
            syscalls.lock_down_process()

    assert run_in_child(work) == 0


def test_privileges_are_dropped() -> None:
    def work() -> None:
        syscalls.drop_privileges(0)
        with open("/proc/self/status") as file:
            assert "CapPrm:\t0000000000000000" in file.read()
        syscalls.drop_privileges(0)  # a process without capabilities stays as it is

    assert run_in_child(work) == 0


def test_initial_environment_is_wiped() -> None:
    def work() -> None:
        syscalls.wipe_initial_environment()
        with open("/proc/self/environ", "rb") as file:
            assert not file.read().strip(b"\0")

    assert run_in_child(work) == 0


def test_environment_is_removed_and_overwritten() -> None:
    def work() -> None:
        kept = os.environb.setdefault(b"KEPT_BY_THE_APP", b"its own value")
        os.environ["SET_BY_THE_APP"] = "value" * 20
        places = syscalls._find_environment_strings()
        assert sum([length for _, length in places]) > 100
        syscalls.clear_environment()
        assert not os.environ and os.getenv("SET_BY_THE_APP") is None
        for address, length in places:
            assert not ctypes.string_at(address, length).strip(b"\0")
        assert kept == b"its own value"  # the app refers to it

    assert run_in_child(work) == 0


def test_memory_that_cannot_be_written_means_unavailable() -> None:
    with pytest.raises(SandboxUnavailable, match="/proc/self/mem"):
        syscalls._overwrite_memory([(8, 1)])


@pytest.mark.parametrize("content", [b"1 (x) R 1", b"1 (x) " + b"0 " * 60])
def test_invalid_proc_stat_means_unavailable(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    import builtins
    import io

    monkeypatch.setattr(builtins, "open", lambda *_: io.BytesIO(content))
    if content.endswith(b"0 "):
        assert syscalls.wipe_initial_environment() is None  # no environment block
    else:
        with pytest.raises(SandboxUnavailable, match="/proc/self/stat"):
            syscalls.wipe_initial_environment()


# ------------------------------------------------------------------ seccomp

ARCH = 0xC000003E
OWN_PID = 4711
KILL, ALLOW = "kill", "allow"


@pytest.fixture
def x86(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the numbers of one processor, so that the tests are the same on all."""
    monkeypatch.setattr(syscalls, "detect_architecture", lambda: "x86_64")


def build(is_truncate_restricted: bool = False, **access: Any) -> SeccompRules:
    return syscalls.build_seccomp_rules(AllowedAccess(**access), OWN_PID, is_truncate_restricted)


def decide(rules: SeccompRules, number: int, *args: int, arch: int = ARCH) -> str | int:
    """Run the filter program as the kernel does; return the decision or the error."""
    program = list(struct.iter_unpack("=HBBI", syscalls.assemble(rules, ARCH)))
    padded = [*args, *[0] * (6 - len(args))]
    data = struct.pack("=IIQ6Q", number, arch, 0, *[arg % 2**64 for arg in padded])
    position, register = 0, 0
    while True:
        code, jump_true, jump_false, operand = program[position]
        position += 1
        if code == 0x20:
            (register,) = struct.unpack_from("=I", data, operand)
        elif code == 0x54:
            register &= operand
        elif code == 0x05:
            position += operand
        elif code in (0x15, 0x25):
            is_met = register == operand if code == 0x15 else register > operand
            position += jump_true if is_met else jump_false
        else:
            assert code == 0x06
            decisions = {0x80000000: KILL, 0x7FFF0000: ALLOW}
            return decisions.get(operand) or operand - 0x00050000


# ------------------------------------------------------------------ decisions

READ, SOCKET, CONNECT, CLONE, FORK, EXECVE, KILL_CALL, FCNTL = 0, 41, 42, 56, 57, 59, 62, 72
TRUNCATE, CHMOD, PTRACE, SOCKETPAIR, IOCTL, PRLIMIT, CLONE3 = 76, 90, 101, 53, 16, 302, 435
OPEN, OPENAT, OPENAT2, CREAT, MKDIR, MKNODAT = 2, 257, 437, 85, 83, 259
THREAD_FLAGS = 0x3D0F00
NEW_USER_NAMESPACE = 0x10000000


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize(
    ("allowed", "number", "args", "expected"),
    [
        ({}, READ, (), ALLOW),
        ({}, PTRACE, (), errno.EPERM),
        ({}, CHMOD, (), errno.EPERM),
        ({"writes": None}, CHMOD, (), ALLOW),
        ({}, TRUNCATE, (), errno.EACCES),
        ({"is_truncate_restricted": True}, TRUNCATE, (), ALLOW),
        ({}, CLONE3, (), errno.ENOSYS),
        ({"spawns": True}, CLONE3, (), errno.ENOSYS),
        # modes of files
        ({}, OPENAT, (3, 0, 0o102, 0o755), ALLOW),
        ({}, OPENAT, (3, 0, 0o102, 0o4755), errno.EPERM),
        ({}, OPENAT, (3, 0, 0o102, 0o2755), errno.EPERM),
        ({}, OPENAT, (3, 0, 0o20200002, 0o4755), errno.EPERM),  # O_TMPFILE
        ({}, OPENAT, (3, 0, 0, 0o7777), ALLOW),  # creates nothing
        ({}, OPEN, (0, 0o102, 0o4755), errno.EPERM),
        ({}, OPEN, (0, 0, 0o4755), ALLOW),
        ({}, CREAT, (0, 0o6755), errno.EPERM),
        ({}, MKDIR, (0, 0o2755), errno.EPERM),
        ({}, MKDIR, (0, 0o1777), ALLOW),
        ({}, MKNODAT, (3, 0, 0o104755), errno.EPERM),
        ({}, OPENAT2, (), errno.ENOSYS),
        ({"writes": None}, OPENAT2, (), errno.ENOSYS),
        ({"writes": None}, OPENAT, (3, 0, 0o102, 0o4755), errno.EPERM),
        ({"writes": None}, CHMOD, (0, 0o755), ALLOW),
        ({"writes": None}, CHMOD, (0, 0o4755), errno.EPERM),
        # processes
        ({}, FORK, (), errno.EPERM),
        ({}, EXECVE, (), errno.EPERM),
        ({"spawns": True}, EXECVE, (), ALLOW),
        ({}, CLONE, (THREAD_FLAGS,), ALLOW),
        ({}, CLONE, (17,), errno.EPERM),
        ({"spawns": True}, CLONE, (17,), ALLOW),
        ({"spawns": True}, CLONE, (17 | NEW_USER_NAMESPACE,), errno.EPERM),
        ({}, KILL_CALL, (OWN_PID, 15), ALLOW),
        ({}, KILL_CALL, (1, 15), errno.EPERM),
        ({}, KILL_CALL, (0, 15), errno.EPERM),
        ({}, KILL_CALL, (-1, 15), errno.EPERM),
        ({"spawns": True}, KILL_CALL, (1, 15), ALLOW),
        ({}, PRLIMIT, (0,), ALLOW),
        ({}, PRLIMIT, (OWN_PID,), ALLOW),
        ({"spawns": True}, PRLIMIT, (1,), errno.EPERM),
        ({}, FCNTL, (3, 2), ALLOW),
        ({}, FCNTL, (3, 8), errno.EPERM),
        ({}, FCNTL, (3, 10), errno.EPERM),
        ({}, FCNTL, (3, 15), errno.EPERM),
        ({"spawns": True}, FCNTL, (3, 8), ALLOW),
        # sockets: 1 is AF_UNIX, 2 is AF_INET, 10 is AF_INET6, 17 is AF_PACKET
        ({}, SOCKET, (2, 1), errno.EACCES),
        ({}, SOCKET, (1, 1), errno.EACCES),
        ({}, CONNECT, (), errno.EACCES),
        ({"net": True}, CONNECT, (), ALLOW),
        ({"net": True}, SOCKET, (2, 1), ALLOW),
        ({"net": True}, SOCKET, (10, 2), ALLOW),
        ({"net": True}, SOCKET, (17, 3), errno.EACCES),
        ({"net": True}, SOCKET, (1, 1), errno.EACCES),
        ({}, SOCKETPAIR, (1, 1), ALLOW),
        ({}, SOCKETPAIR, (1, 1 | 0o2000000), ALLOW),
        ({}, SOCKETPAIR, (1, 2), errno.EACCES),
        ({}, SOCKETPAIR, (2, 1), errno.EACCES),
        ({"net": True, "writes": None}, SOCKETPAIR, (1, 2), ALLOW),
        # ioctl: terminal attributes, TIOCSTI, SIOCGIFCONF
        ({}, IOCTL, (0, 0x5401), ALLOW),
        ({}, IOCTL, (0, 0x5412), errno.EPERM),
        ({}, IOCTL, (0, 0x8912), errno.EPERM),
        ({"net": True}, IOCTL, (0, 0x8912), ALLOW),
        ({"net": True}, IOCTL, (0, 0x5412), errno.EPERM),
        ({"net": True}, IOCTL, (0, 0x8901), errno.EPERM),  # FIOSETOWN
        ({"net": True}, IOCTL, (0, 0x8902), errno.EPERM),  # SIOCSPGRP
    ],
)
def test_filter_allows_or_refuses_a_system_call(
    allowed: dict[str, Any], number: int, args: tuple[int, ...], expected: str | int
) -> None:
    assert decide(build(**allowed), number, *args) == expected


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize(("family", "expected"), [(1, ALLOW), (2, errno.EACCES)])
def test_unix_sockets_are_allowed_without_network(family: int, expected: str | int) -> None:
    checks = syscalls._socket_checks(allow_network=False, allow_unix_sockets=True)["socket"]
    assert decide(SeccompRules({}, {SOCKET: checks}), SOCKET, family, 1) == expected


@pytest.mark.usefixtures("x86")
def test_high_bits_of_an_argument_are_ignored() -> None:
    """The kernel reads these arguments as 32-bit numbers."""
    assert decide(build(), KILL_CALL, OWN_PID | 1 << 32) == ALLOW
    assert decide(build(net=True), SOCKET, 17 | 1 << 32) == errno.EACCES


@pytest.mark.usefixtures("x86")
def test_other_architecture_is_killed() -> None:
    assert decide(build(), READ, arch=0x40000003) == KILL


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize("number", [syscalls.MAX_KNOWN_SYSCALL + 1, 0x40000000 | READ, 2**32 - 1])
def test_unknown_calls_fail_with_enosys(number: int) -> None:
    """Calls of the x32 ABI have bit 30 set."""
    assert decide(build(spawns=True), number) == errno.ENOSYS


@pytest.mark.usefixtures("x86")
def test_last_known_call_is_allowed() -> None:
    assert decide(build(), syscalls.MAX_KNOWN_SYSCALL) == ALLOW


# ------------------------------------------------------------------ checks of arguments


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize("is_allowlist", [True, False])
@pytest.mark.parametrize("value", range(5))
def test_argument_is_checked_against_an_allowlist_or_denylist(
    is_allowlist: bool, value: int
) -> None:
    check = ArgumentCheck(1, (1, 3, 4), is_allowlist=is_allowlist)
    rules = SeccompRules({}, {READ: (errno.EPERM, (check,))})
    is_listed = value in (1, 3, 4)
    assert decide(rules, READ, 9, value) == (ALLOW if is_listed == is_allowlist else errno.EPERM)


@pytest.mark.usefixtures("x86")
def test_every_check_of_a_call_applies() -> None:
    checks = (ArgumentCheck(0, (1,)), ArgumentCheck(1, (2,), 0xF))
    rules = SeccompRules({}, {READ: (errno.EACCES, checks)})
    assert decide(rules, READ, 1, 0xF2) == ALLOW
    assert decide(rules, READ, 1, 0xF3) == errno.EACCES
    assert decide(rules, READ, 0, 0xF2) == errno.EACCES
    assert decide(rules, READ + 1, 0, 0) == ALLOW


@pytest.mark.usefixtures("x86")
def test_empty_allowlist_refuses_every_value() -> None:
    rules = SeccompRules({}, {READ: (errno.EPERM, (ArgumentCheck(0, ()),))})
    assert decide(rules, READ, 0) == errno.EPERM


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize("allowed", [True, False])
def test_program_is_within_the_limits_of_the_kernel(allowed: bool) -> None:
    rules = build(net=True, spawns=allowed, writes=None)
    program = syscalls.assemble(rules, ARCH)
    assert len(program) % 8 == 0 and len(program) // 8 < 4096


# ------------------------------------------------------------------ tables


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 1),
        ("/usr/include/asm-generic/unistd.h", 2),
    ],
)
def test_numbers_match_the_headers_of_the_kernel(header: str, column: int) -> None:
    if not os.path.exists(header):
        pytest.skip("the kernel's headers are not installed")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text()))
    tables = [value for name, value in vars(syscalls).items() if name in _TABLES]
    rows = [entry.split() for table in tables for entry in table.split(",")]
    assert (len(tables), len(rows) > 100) == (len(_TABLES), True)
    wrong = [row for row in rows if row[0] in known and known[row[0]] != row[column]]
    assert not wrong
    missing = [row[0] for row in rows if row[0] not in known and row[column] != "0"]
    assert set(missing) <= {"fchmodat2", "statmount", "listmount"}  # newer than the headers


_TABLES = (
    "_ALWAYS_REFUSED",
    "_MODE_CALLS",
    "_METADATA_CALLS",
    "_ATTRIBUTE_CALLS",
    "_PROCESS_CALLS",
    "_NETWORK_CALLS",
    "_ARGUMENT_CHECKED_CALLS",
)


@pytest.mark.usefixtures("x86")
def test_call_that_a_processor_lacks_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    table = "fork 57 0, execve 59 221"
    assert syscalls._parse_numbers(table) == {"fork": 57, "execve": 59}
    monkeypatch.setattr(syscalls, "detect_architecture", lambda: "aarch64")
    assert syscalls._parse_numbers(table) == {"execve": 221}
    assert 0 not in build().refused


# ------------------------------------------------------------------ the kernel


def fail_with(code: int) -> Any:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize(
    ("code", "expected"), [(errno.EFAULT, True), (errno.ENOSYS, False), (errno.EINVAL, False)]
)
def test_is_seccomp_available(code: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls, "syscall", fail_with(code))
    assert syscalls.is_seccomp_available() is expected


@pytest.mark.usefixtures("x86")
def test_seccomp_that_accepts_a_null_pointer_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(syscalls, "syscall", lambda *_: 0)
    assert not syscalls.is_seccomp_available()


@pytest.mark.usefixtures("x86")
def test_rejected_filter_means_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls, "syscall", fail_with(errno.EACCES))
    with pytest.raises(SandboxUnavailable, match="rejected the filter: Permission denied"):
        syscalls.enforce_seccomp(build())


@pytest.mark.usefixtures("x86")
def test_kernel_gets_the_assembled_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(syscalls, "syscall", lambda *args: calls.append(args) or 0)
    syscalls.enforce_seccomp(build())
    ((number, operation, flags, header),) = calls
    assert (number, operation, flags) == (317, 1, 1)
    length, address = struct.unpack("=H6xQ", header.raw[:16])
    assert length == len(syscalls.assemble(build(), ARCH)) // 8
    assert address
