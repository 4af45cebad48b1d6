"""More evasion attempts, for the sandbox: raw system calls, other processes, devices.

They use the table and the Ground of `evasions`. An attempt that needs a feature that the machine
lacks raises an error. The parent process is the one that created the files; it is outside.
"""

from __future__ import annotations

import array
import ctypes
import errno
import mmap
import os
import platform
import signal
import socket
import struct
from typing import TYPE_CHECKING, Any

from evasions import CHANGED, TOKEN, Attempt, Ground

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS: list[Attempt] = []
ARM = platform.machine() == "aarch64"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
AT_FDCWD = -100


def attempt(kind: str) -> Callable[[Callable[[Ground], Any]], Callable[[Ground], Any]]:
    """Add a function to the table."""

    def enter(fn: Callable[[Ground], Any]) -> Callable[[Ground], Any]:
        ATTEMPTS.append(Attempt(fn.__name__, kind, (fn.__doc__ or "").strip(), fn))
        return fn

    return enter


def call(x86: int, arm: int, *words: Any) -> int:
    """Make a raw system call; raise OSError on failure."""
    given = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    result = LIBC.syscall(ctypes.c_long(arm if ARM else x86), *given)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def path(text: str) -> Any:
    """Return a text as bytes for the kernel."""
    return ctypes.c_char_p(os.fsencode(text))


def drain(descriptor: int) -> str:
    """Return the content of an open file."""
    return os.read(descriptor, 4096).decode("utf-8", "replace")


# ------------------------------------------------------------------ open


@attempt("read")
def raw_openat(ground: Ground) -> Any:
    """openat, as a raw system call"""
    return drain(call(257, 56, AT_FDCWD, path(ground.secret), os.O_RDONLY, 0))


@attempt("read")
def raw_openat2(ground: Ground) -> Any:
    """openat2"""
    how = ctypes.create_string_buffer(struct.pack("=QQQ", os.O_RDONLY, 0, 0), 24)
    return drain(call(437, 437, AT_FDCWD, path(ground.secret), how, 24))


@attempt("read")
def path_only_then_reopen(ground: Ground) -> Any:
    """O_PATH needs no right; opened again through /proc/self/fd"""
    place = os.open(ground.secret, os.O_PATH)
    return drain(os.open(f"/proc/self/fd/{place}", os.O_RDONLY))


@attempt("read")
def path_only_then_empty_path(ground: Ground) -> Any:
    """O_PATH on the folder, openat below it"""
    place = os.open(ground.outside, os.O_PATH)
    return drain(os.open("secret.txt", os.O_RDONLY, dir_fd=place))


@attempt("read")
def open_by_handle(ground: Ground) -> Any:
    """name_to_handle_at and open_by_handle_at: by inode, not by name"""
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 136)
    mount = ctypes.c_int()
    call(303, 264, AT_FDCWD, path(ground.secret), handle, ctypes.byref(mount), 0)
    root = os.open("/", os.O_RDONLY)
    return drain(call(304, 265, root, handle, os.O_RDONLY))


@attempt("read")
def open_by_made_up_handle(ground: Ground) -> Any:
    """open_by_handle_at with a handle that is made up from the inode"""
    inode = os.stat(ground.secret).st_ino
    handle = ctypes.create_string_buffer(struct.pack("=IiII", 8, 1, inode & 0xFFFFFFFF, 0), 136)
    root = os.open(ground.inside, os.O_RDONLY)
    return drain(call(304, 265, root, handle, os.O_RDONLY))


@attempt("read")
def io_uring(ground: Ground) -> Any:
    """io_uring: the kernel opens and reads on behalf of a queue"""
    parameters = ctypes.create_string_buffer(120)
    ring = call(425, 425, 4, parameters)
    return f"a queue {ring} that opens files: {TOKEN}"


@attempt("read")
def thirty_two_bits(ground: Ground) -> Any:
    """int 0x80: the 32-bit table of system calls, which has other numbers"""
    if ARM:
        raise NotImplementedError
    code = bytes([0xCD, 0x80, 0xC3])
    low = LIBC.mmap
    low.restype = ctypes.c_void_p
    place = low(ctypes.c_void_p(0), ctypes.c_size_t(8192), 7, 0x62, -1, ctypes.c_long(0))
    if place in (None, ctypes.c_void_p(-1).value):
        raise OSError("no memory below 4 GiB")
    name = os.fsencode(ground.secret) + b"\0"
    ctypes.memmove(place + 4096, name, len(name))
    # mov eax, 5 (open); mov ebx, name; xor ecx, ecx; xor edx, edx; int 0x80; ret
    program = b"\x53\xb8\x05\0\0\0\xbb" + struct.pack("=I", place + 4096)
    program += b"\x31\xc9\x31\xd2" + code[:2] + b"\x5b\xc3"
    ctypes.memmove(place, program, len(program))
    opened = ctypes.CFUNCTYPE(ctypes.c_int)(place)()
    return drain(opened) if opened >= 0 else None


@attempt("read")
def x32_numbers(ground: Ground) -> Any:
    """x32: the calls under numbers with a high bit"""
    return drain(call(0x40000000 | 257, 56, AT_FDCWD, path(ground.secret), os.O_RDONLY, 0))


@attempt("read")
def mapped(ground: Ground) -> Any:
    """mmap of a file that is opened by a raw call"""
    place = call(257, 56, AT_FDCWD, path(ground.secret), os.O_RDONLY, 0)
    with mmap.mmap(place, 0, prot=mmap.PROT_READ) as memory:
        return memory[:].decode()


@attempt("read")
def descriptor_from_before(ground: Ground) -> Any:
    """pread on every descriptor that was open before"""
    found = [ground.secret_fd, *range(3, 64)]
    for number in found:
        try:
            if TOKEN in (text := os.pread(number, 4096, 0).decode("utf-8", "replace")):
                return text
        except OSError:
            continue
    return None


@attempt("read")
def descriptor_by_proc(ground: Ground) -> Any:
    """/proc/self/fd/N of a descriptor that was open before"""
    with open(f"/proc/self/fd/{ground.secret_fd}") as file:
        return file.read()


@attempt("read")
def folder_from_before(ground: Ground) -> Any:
    """openat below a folder that was open before"""
    return drain(os.open("secret.txt", os.O_RDONLY, dir_fd=ground.folder_fd))


@attempt("read")
def hard_link_inside(ground: Ground) -> Any:
    """A hard link to the secret, made where reading is allowed"""
    os.link(ground.secret, ground.own("hard"))
    with open(ground.own("hard")) as file:
        return file.read()


@attempt("read")
def renamed_inside(ground: Ground) -> Any:
    """The secret moved to where reading is allowed"""
    os.rename(ground.secret, ground.own("moved"))
    with open(ground.own("moved")) as file:
        return file.read()


@attempt("read")
def exchanged(ground: Ground) -> Any:
    """renameat2 with RENAME_EXCHANGE: a file inside for the secret"""
    call(316, 276, AT_FDCWD, path(ground.secret), AT_FDCWD, path(ground.own("own.txt")), 2)
    with open(ground.own("own.txt")) as file:
        return file.read()


@attempt("read")
def link_race(ground: Ground) -> Any:
    """A link that points in and out in turns, opened all the while"""
    inner, outer, link = ground.own("own.txt"), ground.secret, ground.own("turning")
    for turn in range(400):
        draft = ground.own("draft")
        os.symlink(outer if turn % 2 else inner, draft)
        os.rename(draft, link)
        try:
            with open(link) as file:
                if TOKEN in (text := file.read()):
                    return text
        except OSError:
            pass
    return None


@attempt("read")
def folder_race(ground: Ground) -> Any:
    """A folder that is swapped for a link while a thread opens below it"""
    import threading

    os.makedirs(ground.own("way/real"))
    with open(ground.own("way/real/secret.txt"), "w") as file:
        file.write("mine")
    os.symlink(ground.outside, ground.own("way/false"))
    found: list[str] = []

    def look() -> None:
        for _ in range(400):
            try:
                with open(ground.own("way/step/secret.txt")) as file:
                    found.append(file.read())
            except OSError:
                pass

    thread = threading.Thread(target=look)
    thread.start()
    for turn in range(400):
        os.symlink("false" if turn % 2 else "real", ground.own("way/next"))
        os.rename(ground.own("way/next"), ground.own("way/step"))
    thread.join()
    return next((text for text in found if TOKEN in text), None)


# ------------------------------------------------------------------ other processes


@attempt("read")
def memory_of_the_parent(ground: Ground) -> Any:
    """/proc/PPID/mem, where the parent's environment is"""
    parent = os.getppid()
    with open(f"/proc/{parent}/maps") as file:
        stack = next(line for line in file if "[stack]" in line)
    low, high = (int(end, 16) for end in stack.split()[0].split("-"))
    with open(f"/proc/{parent}/mem", "rb") as memory:
        memory.seek(low)
        return TOKEN if TOKEN.encode() in memory.read(high - low) else None


@attempt("read")
def environment_of_the_parent(ground: Ground) -> Any:
    """/proc/PPID/environ"""
    with open(f"/proc/{os.getppid()}/environ") as file:
        return file.read()


@attempt("read")
def descriptors_of_the_parent(ground: Ground) -> Any:
    """/proc/PPID/fd/N of the secret, which the parent has open"""
    with open(f"/proc/{os.getppid()}/fd/{ground.secret_fd}") as file:
        return file.read()


@attempt("read")
def root_of_the_parent(ground: Ground) -> Any:
    """/proc/PPID/root leads outside"""
    with open(f"/proc/{os.getppid()}/root{ground.secret}") as file:
        return file.read()


@attempt("read")
def cwd_of_the_parent(ground: Ground) -> Any:
    """/proc/PPID/cwd leads outside"""
    up = "../" * 12
    with open(f"/proc/{os.getppid()}/cwd/{up}{ground.secret}") as file:
        return file.read()


@attempt("read")
def own_environment_in_proc(ground: Ground) -> Any:
    """/proc/self/environ, as it was at the start"""
    with open("/proc/self/environ") as file:
        return file.read()


@attempt("read")
def own_stack(ground: Ground) -> Any:
    """The initial environment in the memory of the stack"""
    fields = b""
    with open("/proc/self/maps") as file:
        stack = next(line for line in file if "[stack]" in line)
    low, high = (int(end, 16) for end in stack.split()[0].split("-"))
    fields = ctypes.string_at(low, high - low)
    return TOKEN if TOKEN.encode() in fields else None


@attempt("spawn")
def ptrace_the_parent(ground: Ground) -> Any:
    """PTRACE_SEIZE of the parent"""
    call(101, 117, 0x4206, os.getppid(), 0, 0)
    call(101, 117, 17, os.getppid(), 0, 0)
    return "spawned: a traced parent"


@attempt("read")
def memory_by_process_vm(ground: Ground) -> Any:
    """process_vm_readv of the parent"""
    buffer = ctypes.create_string_buffer(64)
    local = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(buffer), 16), 16)
    remote = ctypes.create_string_buffer(
        struct.pack("=QQ", ctypes.cast(LIBC.getpid, ctypes.c_void_p).value or 0, 16), 16
    )
    call(310, 270, os.getppid(), local, 1, remote, 1, 0)
    return f"memory of the parent: {TOKEN}"


@attempt("read")
def descriptor_by_pidfd(ground: Ground) -> Any:
    """pidfd_getfd: a descriptor of the parent's"""
    parent = call(434, 434, os.getppid(), 0)
    return drain(call(438, 438, parent, ground.secret_fd, 0))


@attempt("spawn")
def signal_the_parent(ground: Ground) -> Any:
    """kill(PPID, SIGURG), which is ignored where it arrives"""
    os.kill(os.getppid(), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_pidfd(ground: Ground) -> Any:
    """pidfd_send_signal"""
    call(424, 424, call(434, 434, os.getppid(), 0), signal.SIGURG, 0, 0)
    return "spawned: a signal"


@attempt("spawn")
def signal_everybody(ground: Ground) -> Any:
    """kill(0, 0): the whole group"""
    os.kill(0, 0)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_queue(ground: Ground) -> Any:
    """rt_sigqueueinfo"""
    info = ctypes.create_string_buffer(struct.pack("=iii", signal.SIGURG, 0, -1), 128)
    call(129, 138, os.getppid(), signal.SIGURG, info)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_ownership(ground: Ground) -> Any:
    """F_SETOWN: data on a pipe of ours becomes a signal to the parent"""
    import fcntl

    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(reader, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writer, b"x")
    return "spawned: a signal"


@attempt("spawn")
def limits_of_the_parent(ground: Ground) -> Any:
    """prlimit: how much the parent may open"""
    import resource

    before = resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, before)
    return "spawned: a limit"


@attempt("spawn")
def rank_of_the_parent(ground: Ground) -> Any:
    """setpriority: the parent made to wait"""
    os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()))
    return "spawned: a rank"


@attempt("spawn")
def processors_of_the_parent(ground: Ground) -> Any:
    """sched_setaffinity of the parent"""
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))
    return "spawned: an affinity"


# ------------------------------------------------------------------ programs


@attempt("spawn")
def program_in_memory(ground: Ground) -> Any:
    """memfd_create and execveat: a program that no file holds"""
    place = os.memfd_create("program")
    os.write(place, b"#!/bin/sh\necho spawned > " + os.fsencode(ground.own("spawned")) + b"\n")
    words = (ctypes.c_char_p * 2)(b"program", None)
    call(322, 281, place, path(""), words, None, 0x1000)
    return None


@attempt("spawn")
def raw_fork(ground: Ground) -> Any:
    """fork, as a raw system call"""
    child = call(57, 220, 17, 0, 0, 0, 0)
    if child == 0:
        with open(ground.own("spawned"), "w") as file:
            file.write("spawned")
        os._exit(0)
    os.waitpid(child, 0)
    return "spawned"


@attempt("spawn")
def raw_clone(ground: Ground) -> Any:
    """clone without threads' flags"""
    child = call(56, 220, 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "spawned"


@attempt("spawn")
def raw_clone3(ground: Ground) -> Any:
    """clone3, whose flags no filter can see"""
    words = ctypes.create_string_buffer(struct.pack("=8Q", 0, 0, 0, 0, 17, 0, 0, 0), 64)
    child = call(435, 435, words, 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "spawned"


@attempt("spawn")
def raw_execve(ground: Ground) -> Any:
    """execve, as a raw system call, in this process"""
    text = f"echo spawned > {ground.own('spawned')}".encode()
    words = (ctypes.c_char_p * 4)(b"sh", b"-c", text, None)
    call(59, 221, path("/bin/sh"), words, None)
    return None


# ------------------------------------------------------------------ mounts, roots, namespaces


@attempt("read")
def new_root(ground: Ground) -> Any:
    """chroot: the same file under another name"""
    os.chroot(ground.outside)
    with open("/secret.txt") as file:
        return file.read()


@attempt("read")
def new_namespace(ground: Ground) -> Any:
    """unshare of user and mount namespaces, then a bind mount to where reading is allowed"""
    call(272, 97, 0x10000000 | 0x00020000)
    call(165, 40, path(ground.outside), path(ground.own("deep")), None, 4096, None)
    with open(ground.own("deep/secret.txt")) as file:
        return file.read()


@attempt("read")
def bind_mount(ground: Ground) -> Any:
    """mount --bind"""
    call(165, 40, path(ground.outside), path(ground.own("deep")), None, 4096, None)
    try:
        with open(ground.own("deep/secret.txt")) as file:
            return file.read()
    finally:
        call(166, 39, path(ground.own("deep")), 2)


@attempt("read")
def tree_of_mounts(ground: Ground) -> Any:
    """open_tree with OPEN_TREE_CLONE, and openat below it"""
    place = call(428, 428, AT_FDCWD, path(ground.outside), 1)
    return drain(os.open("secret.txt", os.O_RDONLY, dir_fd=place))


@attempt("write")
def device_node(ground: Ground) -> Any:
    """mknod of a block device inside, and a file outside for the proof that it could"""
    os.mknod(ground.own("disk"), 0o060600, os.stat(ground.outside).st_dev)
    with open(ground.out("made-by-device"), "w") as file:
        file.write(CHANGED)
    return "made"


# ------------------------------------------------------------------ write


@attempt("write")
def raw_truncate(ground: Ground) -> Any:
    """truncate, as a raw system call: no file is opened"""
    return call(76, 45, path(ground.victim), 0) == 0


@attempt("write")
def write_to_descriptor_from_before(ground: Ground) -> Any:
    """pwrite to a descriptor that was open before"""
    return os.pwrite(ground.victim_fd, CHANGED.encode(), 0)


@attempt("write")
def splice_to_descriptor_from_before(ground: Ground) -> Any:
    """copy_file_range to a descriptor that was open before"""
    with open(ground.own("own.txt"), "rb") as file:
        return os.copy_file_range(file.fileno(), ground.victim_fd, 4)


@attempt("write")
def named_temporary(ground: Ground) -> Any:
    """O_TMPFILE outside, then linkat to a name"""
    place = os.open(ground.outside, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(place, CHANGED.encode())
    os.link(f"/proc/self/fd/{place}", ground.out("made"), follow_symlinks=True)
    return "made"


@attempt("write")
def link_outside(ground: Ground) -> Any:
    """A hard link from inside to outside"""
    os.link(ground.own("own.txt"), ground.out("linked"))
    return "made"


@attempt("write")
def bound_socket(ground: Ground) -> Any:
    """bind of a unix socket: a name in a folder outside"""
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    call(
        49, 200, ours.fileno(), struct.pack("=H", 1) + os.fsencode(ground.out("bound")) + b"\0", 90
    )
    return "made"


@attempt("attributes")
def raw_chmod_at(ground: Ground) -> Any:
    """fchmodat2 with an empty path, on O_PATH"""
    place = os.open(ground.victim, os.O_PATH)
    return call(452, 452, place, path(""), 0o777, 0x1000)


@attempt("attributes")
def chmod_by_proc(ground: Ground) -> Any:
    """chmod of /proc/self/fd/N, on O_PATH"""
    place = os.open(ground.victim, os.O_PATH)
    os.chmod(f"/proc/self/fd/{place}", 0o777)
    return True


@attempt("attributes")
def owner_by_descriptor(ground: Ground) -> Any:
    """fchown of a descriptor that was open before"""
    os.fchown(ground.victim_fd, 12345, 12345)
    return True


@attempt("attributes")
def times_by_descriptor(ground: Ground) -> Any:
    """futimens of a descriptor that was open before"""
    os.utime(ground.victim_fd, (1, 1))
    return True


@attempt("attributes")
def flags_of_a_file(ground: Ground) -> Any:
    """FS_IOC_SETFLAGS: a file that nobody may change, not even its owner"""
    import fcntl

    flags = array.array("i", [0])
    place = os.open(ground.own("own.txt"), os.O_RDONLY)
    fcntl.ioctl(place, 0x80086601, flags)
    fcntl.ioctl(place, 0x40086602, flags)
    os.chmod(ground.victim, 0o777)
    return True


@attempt("attributes")
def attribute_by_new_call(ground: Ground) -> Any:
    """setxattrat, which is younger than the filter"""
    value = ctypes.create_string_buffer(b"x", 1)
    words = ctypes.create_string_buffer(struct.pack("=QII", ctypes.addressof(value), 1, 0), 16)
    name = path("user.evasion")
    return call(463, 463, AT_FDCWD, path(ground.victim), 0, name, words, 16) == 0


@attempt("attributes")
def flags_by_new_call(ground: Ground) -> Any:
    """file_setattr, which is younger than the filter; then an old way for the proof"""
    words = ctypes.create_string_buffer(24)
    call(469, 469, AT_FDCWD, path(ground.victim), words, 24, 0)
    os.chmod(ground.victim, 0o777)
    return True


# ------------------------------------------------------------------ communication


@attempt("net")
def abstract_socket(ground: Ground) -> Any:
    """An abstract unix socket: a name in no folder"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(f"\0evasion-{os.getpid()}")
    return "bound"


@attempt("net")
def packet_pair(ground: Ground) -> Any:
    """socketpair of datagrams, whose ends can be sent anywhere"""
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"hello", ground.unix)
    return "bound"


@attempt("net")
def pair_reconnected(ground: Ground) -> Any:
    """A stream pair, connected to somebody else"""
    ours, _ = socket.socketpair()
    ours.connect(ground.unix)
    ours.send(b"hello")
    return "bound"


@attempt("net")
def pair_with_an_address(ground: Ground) -> Any:
    """sendmsg with an address on a stream pair"""
    ours, _ = socket.socketpair()
    ours.sendmsg([b"hello"], [], 0, ground.unix)
    return "bound"


@attempt("net")
def routing(ground: Ground) -> Any:
    """A netlink socket: addresses and routes"""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.bind((0, 0))
    return "bound"


@attempt("net")
def raw_packets(ground: Ground) -> Any:
    """A packet socket: everything that passes by"""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return "bound"


@attempt("net")
def virtual_machines(ground: Ground) -> Any:
    """A vsock to the host"""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return "bound"


@attempt("net")
def multipath(ground: Ground) -> Any:
    """MPTCP: TCP by another number"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as stream:
        stream.connect(("127.0.0.1", ground.tcp))
        stream.send(b"hello")
    return "bound"


@attempt("net")
def fast_open(ground: Ground) -> Any:
    """MSG_FASTOPEN: a connection without connect"""
    with socket.socket() as stream:
        stream.sendto(b"hello", 0x20000000, ("127.0.0.1", ground.tcp))
    return "bound"


@attempt("net")
def socket_from_before(ground: Ground) -> Any:
    """A connection that was there before"""
    return "bound" if os.write(ground.socket_fd, b"hello") else None


@attempt("net")
def descriptor_passed_on(ground: Ground) -> Any:
    """SCM_RIGHTS: the connection from before, sent to ourselves and used"""
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [ground.socket_fd])
    _, numbers, _, _ = socket.recv_fds(theirs, 1, 1)
    return "bound" if os.write(numbers[0], b"hello") else None


@attempt("net")
def shared_memory(ground: Ground) -> Any:
    """shmget: memory that others can attach to"""
    place = call(29, 194, 0x7001, 4096, 0o1600)
    call(31, 195, place, 0, 0)
    return "bound"


@attempt("net")
def semaphores(ground: Ground) -> Any:
    """semget"""
    place = call(64, 190, 0x7001, 1, 0o1600)
    call(66, 191, place, 0, 0)
    return "bound"


@attempt("net")
def message_queue(ground: Ground) -> Any:
    """msgget"""
    place = call(68, 186, 0x7001, 0o1600)
    call(71, 187, place, 0, 0)
    return "bound"


@attempt("net")
def posix_queue(ground: Ground) -> Any:
    """mq_open"""
    call(240, 180, path("evasion"), os.O_CREAT | os.O_RDWR, 0o600, None)
    call(241, 181, path("evasion"))
    return "bound"


@attempt("net")
def shared_folder(ground: Ground) -> Any:
    """shm_open: a file in /dev/shm"""
    from multiprocessing import shared_memory

    made = shared_memory.SharedMemory(create=True, size=64)
    made.close()
    made.unlink()
    return "bound"


@attempt("net")
def keyring(ground: Ground) -> Any:
    """add_key: the user's keyring"""
    call(248, 217, path("user"), path("evasion"), path("x"), 1, -3)
    return "bound"


# ------------------------------------------------------------------ the machine


@attempt("spawn")
def typed_into_the_terminal(ground: Ground) -> Any:
    """TIOCSTI: a key typed into the terminal for its next reader"""
    import fcntl

    try:
        fcntl.ioctl(0, 0x5412, b"x")
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def typed_with_high_bits(ground: Ground) -> Any:
    """TIOCSTI with bits above the 32 that the kernel looks at"""
    try:
        call(16, 29, 0, 0x100005412, ctypes.create_string_buffer(b"x"))
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def program_for_the_kernel(ground: Ground) -> Any:
    """bpf"""
    try:
        call(321, 280, 0, 0, 0)
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def counters(ground: Ground) -> Any:
    """perf_event_open"""
    try:
        call(298, 241, 0, 0, -1, -1, 0)
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def faults(ground: Ground) -> Any:
    """userfaultfd"""
    call(323, 282, 1)
    return "spawned: faults are ours"


@attempt("spawn")
def other_personality(ground: Ground) -> Any:
    """personality: addresses that are not random"""
    call(135, 92, 0xFFFFFFFF)
    return "spawned: another personality"


@attempt("spawn")
def kernel_module(ground: Ground) -> Any:
    """finit_module"""
    try:
        call(313, 273, -1, path(""), 0)
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def clock(ground: Ground) -> Any:
    """clock_settime, to what it is"""
    import time

    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))
    return "spawned: the clock was set"


@attempt("spawn")
def privileges_again(ground: Ground) -> Any:
    """setuid to another user, which takes a privilege"""
    os.setresuid(12345, 12345, 12345)
    return "spawned: as another user"


@attempt("read")
def kernel_log(ground: Ground) -> Any:
    """syslog: the messages of the kernel"""
    buffer = ctypes.create_string_buffer(4096)
    call(103, 116, 3, buffer, 4096)
    return f"{TOKEN}: {buffer.raw[:80]!r}"


@attempt("read")
def disk_itself(ground: Ground) -> Any:
    """/dev/mem and the disks"""
    device = os.stat(ground.outside).st_dev
    with open(f"/dev/block/{os.major(device)}:{os.minor(device)}", "rb") as file:
        file.read(1)
    return f"the disk: {TOKEN}"


@attempt("read")
def another_filter(ground: Ground) -> Any:
    """A second filter and a second ruleset that allow everything: neither removes the first"""
    allow = struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)
    text = ctypes.create_string_buffer(allow, 8)
    header = ctypes.create_string_buffer(struct.pack("=H6xQ", 1, ctypes.addressof(text)), 16)
    call(317, 277, 1, 0, header)
    attributes = ctypes.create_string_buffer(struct.pack("=Q", 4), 8)
    rules = call(444, 444, attributes, 8, 0)
    place = os.open("/", os.O_PATH)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", 4, place), 12)
    call(445, 445, rules, 1, rule, 0)
    call(446, 446, rules, 0)
    with open(ground.secret) as file:
        return file.read()


@attempt("read")
def in_a_new_thread(ground: Ground) -> Any:
    """A thread that starts after the sandbox was entered"""
    import threading

    found: list[str] = []

    def look() -> None:
        with open(ground.secret) as file:
            found.append(file.read())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found
