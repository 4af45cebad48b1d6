"""System calls of Linux (x86_64 and aarch64): make calls that Python lacks, and filter calls.

    number, arguments ──▶ a filter program in the kernel ──▶ allowed │ refused with an error

The filter (seccomp) covers what Landlock does not. The tables list the refused calls. Calls above
MAX_KNOWN_SYSCALL are newer than the tables. They fail with ENOSYS, as on an older kernel.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

from tooli.core import Record
from tooli.execution.processes import prctl

TYPE_CHECKING = False

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    from tooli.core.declared_capabilities import AllowedAccess

    _Checks: TypeAlias = tuple[int, tuple["ArgumentCheck", ...]]  # the error, and the conditions
else:
    try:
        import ctypes
    except ImportError:  # Python was built without libffi; _load_libc() reports it
        ctypes = None

_NO_NEW_PRIVS, _DUMPABLE, _AMBIENT, _CLEAR_ALL = 38, 4, 47, 4
_CAPABILITY_SYSCALLS = {"x86_64": (125, 126), "aarch64": (90, 91)}  # capget and capset
_CAPABILITY_VERSION = 0x20080522
_libc: Any = None


class SandboxUnavailable(Exception):  # noqa: N818
    """The system does not support a sandbox; the message says what is missing."""


def detect_architecture() -> str:
    """Return the processor architecture, or raise SandboxUnavailable."""
    if sys.platform != "linux":
        raise SandboxUnavailable(f"a sandbox needs Linux, not {sys.platform}")
    name = os.uname().machine
    if name not in _CAPABILITY_SYSCALLS or sys.maxsize < 2**32:
        raise SandboxUnavailable(f"the system calls of {name} are not supported")
    return name


def syscall(number: int, *args: Any) -> int:
    """Call the kernel and return the result, or raise OSError."""
    result = _load_libc().syscall(
        *[ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in (number, *args)]
    )
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _load_libc() -> Any:
    global _libc
    if _libc is None:
        try:
            _libc = ctypes.CDLL(None, use_errno=True)
            _libc.syscall.restype = ctypes.c_long
        except (OSError, AttributeError) as error:
            raise SandboxUnavailable(f"ctypes cannot load the C library: {error}") from None
    return _libc


def lock_down_process() -> None:
    """Forbid new privileges, core dumps and inspection by other processes (ptrace)."""
    import resource

    # With the limit 1, the kernel does not start a program that stores core dumps either.
    hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    limit = 0 if hard_limit == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
    if not (prctl(_DUMPABLE, 0) and prctl(_NO_NEW_PRIVS, 1)):
        raise SandboxUnavailable("the kernel does not let a process drop its privileges (prctl)")


def drop_privileges(keep_mask: int) -> None:
    """Drop all Linux capabilities except `keep_mask`. Do nothing if the process has none."""
    capget, capset = _CAPABILITY_SYSCALLS[detect_architecture()]
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    data = ctypes.create_string_buffer(24)
    syscall(capget, header, data)
    effective, permitted, _, permitted_high, *_ = struct.unpack("=6I", data.raw)
    if not permitted and not permitted_high:
        return
    prctl(_AMBIENT, _CLEAR_ALL)  # fails before Linux 4.3, which has no ambient capabilities
    remaining = struct.pack("=6I", effective & keep_mask, permitted & keep_mask, 0, 0, 0, 0)
    syscall(capset, header, ctypes.create_string_buffer(remaining, 24))


def clear_environment() -> None:
    """Remove all environment variables, and overwrite their values in memory.

    Removing a variable does not overwrite it: its memory keeps the text after it is freed. A copy
    that the app has made is a different object, which stays.
    """
    strings = _find_environment_strings()
    values = list(os.environb.values())
    for name in list(os.environb):
        del os.environb[name]  # `clear` would decode each value, which makes a copy
    while values:
        value = values.pop()
        # A longer value that nothing else refers to. Python shares bytes of one character.
        if len(value) > 1 and sys.getrefcount(value) <= 2:
            ctypes.memset(id(value) + bytes.__basicsize__ - 1, 0, len(value))
    _overwrite_memory(strings)
    wipe_initial_environment()


def _find_environment_strings() -> list[tuple[int, int]]:
    """Return the addresses and lengths of the variables in the environment of the C library."""
    libc = ctypes.CDLL(None)
    libc.strlen.argtypes, libc.strlen.restype = (ctypes.c_void_p,), ctypes.c_size_t
    entry = ctypes.c_void_p.in_dll(libc, "environ").value
    found: list[tuple[int, int]] = []
    while entry:
        string = ctypes.c_void_p.from_address(entry).value
        if string is None:
            break
        found.append((string, libc.strlen(string)))
        entry += ctypes.sizeof(ctypes.c_void_p)
    return found


def _overwrite_memory(places: list[tuple[int, int]]) -> None:
    """Overwrite memory of this process that may be read-only, such as a constant of a library."""
    try:
        memory = os.open("/proc/self/mem", os.O_WRONLY)
    except OSError as error:
        raise SandboxUnavailable(f"/proc/self/mem cannot be written: {error.strerror}") from None
    try:
        for address, length in places:
            if length:
                os.pwrite(memory, bytes(length), address)
    except OSError as error:
        raise SandboxUnavailable(f"/proc/self/mem cannot be written: {error.strerror}") from None
    finally:
        os.close(memory)


def wipe_initial_environment() -> None:
    """Overwrite the environment block that the process was started with.

    Removing a variable removes only a pointer. The text stays on the stack and in
    /proc/self/environ.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[47]), int(fields[48])  # env_start and env_end, see proc(5)
    except (OSError, ValueError, IndexError) as error:
        raise SandboxUnavailable(f"/proc/self/stat cannot be read: {error}") from None
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)


# ------------------------------------------------------------------ seccomp

MAX_KNOWN_SYSCALL = 462
_AUDIT_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP_SYSCALL = {"x86_64": 317, "aarch64": 277}

# Names with their numbers on x86_64 and aarch64; 0: the call does not exist there.
_ALWAYS_REFUSED = """
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440,
process_mrelease 448 448, kcmp 312 272, pidfd_getfd 438 438, migrate_pages 256 238,
move_pages 279 239, perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425 425,
io_uring_enter 426 426, io_uring_register 427 427, bpf 321 280, memfd_secret 447 447,
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, move_mount 429 429,
open_tree 428 428, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433,
mount_setattr 442 442, statmount 457 457, listmount 458 458, setns 308 268, unshare 272 97,
open_by_handle_at 304 265, name_to_handle_at 303 264, fanotify_init 300 262,
fanotify_mark 301 263, inotify_init 253 0, inotify_init1 294 26, quotactl 179 60,
quotactl_fd 443 443, swapon 167 224, swapoff 168 225, get_robust_list 274 100, keyctl 250 219,
add_key 248 217, request_key 249 218, shmget 29 194, shmat 30 196, shmctl 31 195,
semget 64 190, semop 65 193, semctl 66 191, semtimedop 220 192, msgget 68 186,
msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181,
init_module 175 105, finit_module 313 273, delete_module 176 106, create_module 174 0,
query_module 178 0, get_kernel_syms 177 0, kexec_load 246 104, kexec_file_load 320 294,
reboot 169 142, acct 163 89, syslog 103 116, settimeofday 164 170, clock_settime 227 112,
clock_adjtime 305 266, adjtimex 159 171, sethostname 170 161, setdomainname 171 162,
vhangup 153 58, personality 135 92, modify_ldt 154 0, ioperm 173 0, iopl 172 0, uselib 134 0,
nfsservctl 180 42, lookup_dcookie 212 18, _sysctl 156 0, vserver 236 0
"""
"""Calls that are always refused: they affect other processes or the machine, or bypass Landlock."""
_METADATA_CALLS = """
chmod 90 0, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 0, fchown 93 55,
lchown 94 0, fchownat 260 54, utime 132 0, utimes 235 0, futimesat 261 0, utimensat 280 88,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, removexattr 197 14, lremovexattr 198 15,
fremovexattr 199 16
"""
"""Calls that change metadata of files, which Landlock does not restrict."""
_ATTRIBUTE_CALLS = """
getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10, listxattr 194 11, llistxattr 195 12,
flistxattr 196 13
"""
"""Calls that read extended attributes. They fail as on a file system without attributes."""
_PROCESS_CALLS = """
fork 57 0, vfork 58 0, execve 59 221, execveat 322 281, pidfd_open 434 434,
pidfd_send_signal 424 424, tkill 200 130
"""
"""Calls that start or control other processes."""
_NETWORK_CALLS = "connect 42 203, bind 49 200, listen 50 201, accept 43 202, accept4 288 242"
_ARGUMENT_CHECKED_CALLS = """
socket 41 198, socketpair 53 199, clone 56 220, clone3 435 435, ioctl 16 29, fcntl 72 25,
kill 62 129, tgkill 234 131, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240,
prlimit64 302 261, setpriority 141 140, ioprio_set 251 30, sched_setscheduler 144 119,
sched_setparam 142 118, sched_setattr 314 274, sched_setaffinity 203 122, truncate 76 45,
openat2 437 437
"""
_MODE_CALLS = """
open 2 0, openat 257 56, creat 85 0, mkdir 83 0, mkdirat 258 34, mknod 133 0, mknodat 259 33,
chmod 90 0, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452
"""
"""Calls that set the mode of a file, which must not be a set-user-ID or set-group-ID mode."""
_MODE_ARGUMENTS = {
    1: ("creat", "mkdir", "mknod", "chmod", "fchmod"),
    2: ("open", "mkdirat", "mknodat", "fchmodat", "fchmodat2"),
    3: ("openat",),
}
"""Which argument of these calls is the mode."""
_SET_ID_BITS, _CREATE_FLAGS = 0o6000, 0o100 | 0o20000000  # O_CREAT and __O_TMPFILE

_CLONE_THREAD, _CLONE_NAMESPACES = 0x10000, 0x7E020000
_AF_UNIX, _SOCK_STREAM, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 1, 2, 10, 16
# With F_SETOWN, F_SETSIG and F_SETOWN_EX the kernel can signal other processes.
_FCNTL_OWNER_COMMANDS = (8, 10, 15)
# F_SETLEASE delays other processes that open the file. F_NOTIFY reports changes in a folder.
_FCNTL_REFUSED_COMMANDS = (1024, 1026)
_ALLOWED_IOCTLS = (
    *(*range(0x5401, 0x540A), 0x540B),  # terminals: attributes, flush
    *(0x540F, 0x5410, 0x5411, 0x5413, 0x5429),  # terminals: group, queue, size, session
    *(0x541B, 0x5421, 0x5450, 0x5451),  # bytes to read; non-blocking mode; close on exec
    *(0x40049409, 0x4020940D),  # clone the content of a file
)
"""Requests of ioctl that are allowed.

TIOCSTI (type into the terminal), TCXONC (stop its output) and file flags are not.
"""

# Without FIOSETOWN and SIOCSPGRP (0x8901, 0x8902): the kernel could signal other processes.
_SOCKET_IOCTLS = range(0x8903, 0x8960)


class ArgumentCheck(Record):
    """A condition for one argument of a call, which is masked before the comparison.

    The argument must be one of the values, or none of them if `is_allowlist` is False. With
    `is_sufficient`, a match allows the call, and otherwise the next check applies.
    """

    index: int
    values: tuple[int, ...]
    mask: int | None = None
    is_allowlist: bool = True
    is_sufficient: bool = False


class SeccompRules(Record):
    """Rules by system call number: the error of refused calls, and the checks of other calls."""

    refused: Mapping[int, int]
    checked: Mapping[int, tuple[int, tuple[ArgumentCheck, ...]]]


def build_seccomp_rules(
    access: AllowedAccess, own_pid: int, is_truncate_restricted: bool
) -> SeccompRules:
    """Return the rules for a process with this access.

    Args:
        access: What the process may access.
        own_pid: The process may send signals to itself.
        is_truncate_restricted: True if Landlock restricts truncate, so that it can be allowed here.
    """
    can_write_anywhere = access.writes is None
    numbers = _parse_numbers(f"{_ARGUMENT_CHECKED_CALLS},{_MODE_CALLS}")
    refused = dict.fromkeys(_parse_numbers(_ALWAYS_REFUSED).values(), errno.EPERM)
    if not can_write_anywhere:
        refused.update(dict.fromkeys(_parse_numbers(_METADATA_CALLS).values(), errno.EPERM))
    if access.reads is not None:
        refused.update(dict.fromkeys(_parse_numbers(_ATTRIBUTE_CALLS).values(), errno.EOPNOTSUPP))
    if not access.spawns:
        refused.update(dict.fromkeys(_parse_numbers(_PROCESS_CALLS).values(), errno.EPERM))
    if not access.net:
        refused.update(dict.fromkeys(_parse_numbers(_NETWORK_CALLS).values(), errno.EACCES))
    # The flags of these calls are in memory and cannot be checked; libraries fall back to others.
    refused[numbers["clone3"]] = refused[numbers["openat2"]] = errno.ENOSYS
    if not (can_write_anywhere or is_truncate_restricted):
        refused[numbers["truncate"]] = errno.EACCES
    calls = {
        **_process_checks(access.spawns, own_pid),
        **_socket_checks(access.net, access.net and can_write_anywhere),
        **_mode_checks(),
    }
    requests = (*_ALLOWED_IOCTLS, *(_SOCKET_IOCTLS if access.net else ()))
    calls["ioctl"] = (errno.EPERM, (ArgumentCheck(1, requests),))
    return SeccompRules(
        refused, {numbers[name]: rule for name, rule in calls.items() if name in numbers}
    )


def _parse_numbers(table: str) -> dict[str, int]:
    """Return the numbers of the calls of a table on this processor, by name.

    Calls that this processor lacks are skipped.
    """
    column = 1 + (detect_architecture() == "aarch64")
    rows = [entry.split() for entry in table.split(",")]
    return {row[0]: int(row[column]) for row in rows if int(row[column])}


def _process_checks(allow_processes: bool, own_pid: int) -> dict[str, _Checks]:
    """Return the checks of calls that act on processes."""
    is_own_pid = (ArgumentCheck(0, (own_pid,)),)
    is_zero_or_own_pid = (ArgumentCheck(0, (0, own_pid)),)
    calls: dict[str, _Checks] = {
        "prlimit64": (errno.EPERM, is_zero_or_own_pid),
        "setpriority": (errno.EPERM, (ArgumentCheck(0, (0,)), ArgumentCheck(1, (0,)))),
        "ioprio_set": (errno.EPERM, (ArgumentCheck(0, (1,)), ArgumentCheck(1, (0, own_pid)))),
        "clone": (
            errno.EPERM,
            (ArgumentCheck(0, (0,), _CLONE_NAMESPACES),)
            if allow_processes
            else (ArgumentCheck(0, (_CLONE_THREAD,), _CLONE_THREAD),),
        ),
    }
    for name in ("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"):
        calls[name] = (errno.EPERM, is_zero_or_own_pid)
    if not allow_processes:
        for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            calls[name] = (errno.EPERM, is_own_pid)
    commands = (*_FCNTL_REFUSED_COMMANDS, *(() if allow_processes else _FCNTL_OWNER_COMMANDS))
    calls["fcntl"] = (errno.EPERM, (ArgumentCheck(1, commands, is_allowlist=False),))
    return calls


def _socket_checks(allow_network: bool, allow_unix_sockets: bool) -> dict[str, _Checks]:
    """Return the checks of calls that create sockets."""
    families = (_AF_INET, _AF_INET6, _AF_NETLINK) if allow_network else ()
    unix = (_AF_UNIX,) if allow_unix_sockets else ()
    calls: dict[str, _Checks] = {"socket": (errno.EACCES, (ArgumentCheck(0, (*families, *unix)),))}
    if not (allow_network and allow_unix_sockets):
        pair_checks = (ArgumentCheck(0, (_AF_UNIX,)), ArgumentCheck(1, (_SOCK_STREAM,), 0xF))
        calls["socketpair"] = (errno.EACCES, pair_checks)
    return calls


def _mode_checks() -> dict[str, _Checks]:
    """Return the checks of calls that set the mode of a file."""
    calls: dict[str, _Checks] = {}
    for name, index in [(name, i) for i, names in _MODE_ARGUMENTS.items() for name in names]:
        checks = (ArgumentCheck(index, (0,), _SET_ID_BITS),)
        if name in ("open", "openat"):  # without these flags, the mode has no meaning and no value
            creates_nothing = ArgumentCheck(index - 1, (0,), _CREATE_FLAGS, is_sufficient=True)
            checks = (creates_nothing, *checks)
        calls[name] = (errno.EPERM, checks)
    return calls


# ------------------------------------------------------------------ the filter program

_LOAD, _AND, _JUMP, _EQUAL, _ABOVE, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x25, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


def assemble(rules: SeccompRules, arch: int) -> bytes:
    """Return the rules as a program for the kernel."""
    instructions = [
        _load_word(4),
        _instruction(_EQUAL, arch, 1, 0),
        _instruction(_RETURN, _KILL),
        _load_word(0),
        _instruction(_ABOVE, MAX_KNOWN_SYSCALL, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for number, code in rules.refused.items():
        instructions += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, _ERRNO | code)]
    for number, (code, checks) in rules.checked.items():
        block = [instruction for check in checks for instruction in _assemble_check(check, code)]
        block.append(_instruction(_RETURN, _ALLOW))
        instructions += [_instruction(_EQUAL, number, 0, len(block)), *block]
    return b"".join([*instructions, _instruction(_RETURN, _ALLOW)])


def _assemble_check(check: ArgumentCheck, code: int) -> Iterable[bytes]:
    """Yield the instructions of one check. It compares the low 32 bits of the argument."""
    yield _load_word(16 + 8 * check.index)
    if check.mask is not None:
        yield _instruction(_AND, check.mask)
    if check.is_sufficient:
        for value in check.values:
            yield _instruction(_EQUAL, value, 0, 1)
            yield _instruction(_RETURN, _ALLOW)
        return
    after = len(check.values)
    # A match skips the rest of the list and one more instruction. In an allowlist this is the
    # refusal. In a denylist it is the jump over the refusal.
    for value in check.values:
        yield _instruction(_EQUAL, value, after, 0)
        after -= 1
    if not check.is_allowlist:
        yield _instruction(_JUMP, 1)
    yield _instruction(_RETURN, _ERRNO | code)


def _load_word(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _instruction(code: int, operand: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump_true, jump_false, operand)


def is_seccomp_available() -> bool:
    """True if the kernel supports filters. A null pointer then causes the error EFAULT."""
    try:
        syscall(_SECCOMP_SYSCALL[detect_architecture()], 1, 0, 0)
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


def enforce_seccomp(rules: SeccompRules) -> None:
    """Apply the rules to this process and everything it starts, or raise SandboxUnavailable."""
    name = detect_architecture()
    program = assemble(rules, _AUDIT_ARCHES[name])
    code_buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(
        struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(code_buffer))
    )
    try:
        syscall(_SECCOMP_SYSCALL[name], 1, 1, header)  # set a filter for all threads
    except OSError as error:
        raise SandboxUnavailable(f"seccomp rejected the filter: {error.strerror}") from None
