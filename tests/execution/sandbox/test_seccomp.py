"""seccomp: the tables of system calls, the checks of arguments, the filter program."""

from __future__ import annotations

import errno
import os
import re
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tooli.execution.sandbox import seccomp
from tooli.execution.sandbox.seccomp import ArgumentCheck, SeccompRules
from tooli.execution.sandbox.syscalls import SandboxUnavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

ARCH = 0xC000003E
OWN_PID = 4711
KILL, ALLOW = "kill", "allow"
NOTHING_ALLOWED = {
    "own_pid": OWN_PID,
    "allow_network": False,
    "allow_processes": False,
    "allow_metadata_changes": False,
    "allow_unix_sockets": False,
    "allow_truncate": False,
}


@pytest.fixture(autouse=True)
def x86(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the numbers of one processor, so that the tests are the same on all."""
    monkeypatch.setattr(seccomp, "detect_architecture", lambda: "x86_64")


def build(**allowed: Any) -> SeccompRules:
    return seccomp.build_seccomp_rules(**{**NOTHING_ALLOWED, **allowed})


def decide(rules: SeccompRules, number: int, *args: int, arch: int = ARCH) -> str | int:
    """Run the filter program as the kernel does; return the decision or the error."""
    program = list(struct.iter_unpack("=HBBI", seccomp.assemble(rules, ARCH)))
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
THREAD_FLAGS = 0x3D0F00
NEW_USER_NAMESPACE = 0x10000000


@pytest.mark.parametrize(
    ("allowed", "number", "args", "expected"),
    [
        ({}, READ, (), ALLOW),
        ({}, PTRACE, (), errno.EPERM),
        ({}, CHMOD, (), errno.EPERM),
        ({"allow_metadata_changes": True}, CHMOD, (), ALLOW),
        ({}, TRUNCATE, (), errno.EACCES),
        ({"allow_truncate": True}, TRUNCATE, (), ALLOW),
        ({}, CLONE3, (), errno.ENOSYS),
        ({"allow_processes": True}, CLONE3, (), errno.ENOSYS),
        # processes
        ({}, FORK, (), errno.EPERM),
        ({}, EXECVE, (), errno.EPERM),
        ({"allow_processes": True}, EXECVE, (), ALLOW),
        ({}, CLONE, (THREAD_FLAGS,), ALLOW),
        ({}, CLONE, (17,), errno.EPERM),
        ({"allow_processes": True}, CLONE, (17,), ALLOW),
        ({"allow_processes": True}, CLONE, (17 | NEW_USER_NAMESPACE,), errno.EPERM),
        ({}, KILL_CALL, (OWN_PID, 15), ALLOW),
        ({}, KILL_CALL, (1, 15), errno.EPERM),
        ({}, KILL_CALL, (0, 15), errno.EPERM),
        ({}, KILL_CALL, (-1, 15), errno.EPERM),
        ({"allow_processes": True}, KILL_CALL, (1, 15), ALLOW),
        ({}, PRLIMIT, (0,), ALLOW),
        ({}, PRLIMIT, (OWN_PID,), ALLOW),
        ({"allow_processes": True}, PRLIMIT, (1,), errno.EPERM),
        ({}, FCNTL, (3, 2), ALLOW),
        ({}, FCNTL, (3, 8), errno.EPERM),
        ({}, FCNTL, (3, 10), errno.EPERM),
        ({}, FCNTL, (3, 15), errno.EPERM),
        ({"allow_processes": True}, FCNTL, (3, 8), ALLOW),
        # sockets: 1 is AF_UNIX, 2 is AF_INET, 10 is AF_INET6, 17 is AF_PACKET
        ({}, SOCKET, (2, 1), errno.EACCES),
        ({}, SOCKET, (1, 1), errno.EACCES),
        ({}, CONNECT, (), errno.EACCES),
        ({"allow_network": True}, CONNECT, (), ALLOW),
        ({"allow_network": True}, SOCKET, (2, 1), ALLOW),
        ({"allow_network": True}, SOCKET, (10, 2), ALLOW),
        ({"allow_network": True}, SOCKET, (17, 3), errno.EACCES),
        ({"allow_network": True}, SOCKET, (1, 1), errno.EACCES),
        ({"allow_unix_sockets": True}, SOCKET, (1, 1), ALLOW),
        ({"allow_unix_sockets": True}, SOCKET, (2, 1), errno.EACCES),
        ({}, SOCKETPAIR, (1, 1), ALLOW),
        ({}, SOCKETPAIR, (1, 1 | 0o2000000), ALLOW),
        ({}, SOCKETPAIR, (1, 2), errno.EACCES),
        ({}, SOCKETPAIR, (2, 1), errno.EACCES),
        ({"allow_network": True, "allow_unix_sockets": True}, SOCKETPAIR, (1, 2), ALLOW),
        # ioctl: terminal attributes, TIOCSTI, SIOCGIFCONF
        ({}, IOCTL, (0, 0x5401), ALLOW),
        ({}, IOCTL, (0, 0x5412), errno.EPERM),
        ({}, IOCTL, (0, 0x8912), errno.EPERM),
        ({"allow_network": True}, IOCTL, (0, 0x8912), ALLOW),
        ({"allow_network": True}, IOCTL, (0, 0x5412), errno.EPERM),
    ],
)
def test_decision(
    allowed: dict[str, bool], number: int, args: tuple[int, ...], expected: str | int
) -> None:
    assert decide(build(**allowed), number, *args) == expected


def test_high_bits_of_an_argument_are_ignored() -> None:
    """The kernel reads these arguments as 32-bit numbers."""
    assert decide(build(), KILL_CALL, OWN_PID | 1 << 32) == ALLOW
    assert decide(build(allow_network=True), SOCKET, 17 | 1 << 32) == errno.EACCES


def test_other_architecture_is_killed() -> None:
    assert decide(build(), READ, arch=0x40000003) == KILL


@pytest.mark.parametrize("number", [seccomp.MAX_KNOWN_SYSCALL + 1, 0x40000000 | READ, 2**32 - 1])
def test_unknown_calls_do_not_exist(number: int) -> None:
    """Calls of the x32 ABI have bit 30 set."""
    assert decide(build(allow_processes=True), number) == errno.ENOSYS


def test_last_known_call_is_allowed() -> None:
    assert decide(build(), seccomp.MAX_KNOWN_SYSCALL) == ALLOW


# ------------------------------------------------------------------ checks of arguments


@pytest.mark.parametrize("is_allowlist", [True, False])
@pytest.mark.parametrize("value", range(5))
def test_lists_of_values(is_allowlist: bool, value: int) -> None:
    check = ArgumentCheck(1, (1, 3, 4), is_allowlist=is_allowlist)
    rules = SeccompRules({}, {READ: (errno.EPERM, (check,))})
    is_listed = value in (1, 3, 4)
    assert decide(rules, READ, 9, value) == (ALLOW if is_listed == is_allowlist else errno.EPERM)


def test_every_check_of_a_call_applies() -> None:
    checks = (ArgumentCheck(0, (1,)), ArgumentCheck(1, (2,), 0xF))
    rules = SeccompRules({}, {READ: (errno.EACCES, checks)})
    assert decide(rules, READ, 1, 0xF2) == ALLOW
    assert decide(rules, READ, 1, 0xF3) == errno.EACCES
    assert decide(rules, READ, 0, 0xF2) == errno.EACCES
    assert decide(rules, READ + 1, 0, 0) == ALLOW


def test_empty_allowlist_refuses_every_value() -> None:
    rules = SeccompRules({}, {READ: (errno.EPERM, (ArgumentCheck(0, ()),))})
    assert decide(rules, READ, 0) == errno.EPERM


@pytest.mark.parametrize("allowed", [True, False])
def test_program_is_within_the_limits_of_the_kernel(allowed: bool) -> None:
    rules = build(
        allow_network=True,
        allow_processes=allowed,
        allow_unix_sockets=True,
    )
    program = seccomp.assemble(rules, ARCH)
    assert len(program) % 8 == 0 and len(program) // 8 < 4096


# ------------------------------------------------------------------ tables


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
    tables = [value for name, value in vars(seccomp).items() if name in _TABLES]
    rows = [entry.split() for table in tables for entry in table.split(",")]
    assert (len(tables), len(rows) > 100) == (len(_TABLES), True)
    wrong = [row for row in rows if row[0] in known and known[row[0]] != row[column]]
    assert not wrong
    missing = [row[0] for row in rows if row[0] not in known and row[column] != "0"]
    assert set(missing) <= {"fchmodat2", "statmount", "listmount"}  # newer than the headers


_TABLES = (
    "_ALWAYS_REFUSED",
    "_METADATA_CALLS",
    "_PROCESS_CALLS",
    "_NETWORK_CALLS",
    "_ARGUMENT_CHECKED_CALLS",
)


def test_call_that_a_processor_lacks_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    table = "fork 57 0, execve 59 221"
    assert seccomp._parse_numbers(table) == {"fork": 57, "execve": 59}
    monkeypatch.setattr(seccomp, "detect_architecture", lambda: "aarch64")
    assert seccomp._parse_numbers(table) == {"execve": 221}
    assert 0 not in build().refused


# ------------------------------------------------------------------ the kernel


def fail_with(code: int) -> Any:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("code", "expected"), [(errno.EFAULT, True), (errno.ENOSYS, False), (errno.EINVAL, False)]
)
def test_is_available(code: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "syscall", fail_with(code))
    assert seccomp.is_available() is expected


def test_success_with_a_null_pointer_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "syscall", lambda *_: 0)
    assert not seccomp.is_available()


def test_rejected_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "syscall", fail_with(errno.EACCES))
    with pytest.raises(SandboxUnavailable, match="rejected the filter: Permission denied"):
        seccomp.enforce(build())


def test_kernel_gets_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(seccomp, "syscall", lambda *args: calls.append(args) or 0)
    seccomp.enforce(build())
    ((number, operation, flags, header),) = calls
    assert (number, operation, flags) == (317, 1, 1)
    length, address = struct.unpack("=H6xQ", header.raw[:16])
    assert length == len(seccomp.assemble(build(), ARCH)) // 8
    assert address
