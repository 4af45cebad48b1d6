"""More evasion attempts, for the sandbox: raw system calls, other processes, devices.

They use the table and the Workspace of `evasions`. An attempt that needs a feature that the machine
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
from typing import Any

from evasions import CHANGED, TOKEN, Attempt, Workspace, make_decorator

ATTEMPTS: list[Attempt] = []
attempt = make_decorator(ATTEMPTS)
ARM = platform.machine() == "aarch64"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
AT_FDCWD = -100


def syscall(x86: int, arm: int, *args: Any) -> int:
    """Make a raw system call; raise OSError on failure."""
    native_args = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = LIBC.syscall(ctypes.c_long(arm if ARM else x86), *native_args)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def c_path(text: str) -> Any:
    """Return a path as a C string for the kernel."""
    return ctypes.c_char_p(os.fsencode(text))


def read_descriptor(descriptor: int) -> str:
    """Return the content of an open file."""
    return os.read(descriptor, 4096).decode("utf-8", "replace")


# ------------------------------------------------------------------ open


@attempt("read")
def raw_openat(workspace: Workspace) -> Any:
    """openat, as a raw system call"""
    return read_descriptor(syscall(257, 56, AT_FDCWD, c_path(workspace.secret), os.O_RDONLY, 0))


@attempt("read")
def raw_openat2(workspace: Workspace) -> Any:
    """openat2"""
    how = ctypes.create_string_buffer(struct.pack("=QQQ", os.O_RDONLY, 0, 0), 24)
    return read_descriptor(syscall(437, 437, AT_FDCWD, c_path(workspace.secret), how, 24))


@attempt("read")
def path_only_then_reopen(workspace: Workspace) -> Any:
    """O_PATH needs no right; opened again through /proc/self/fd"""
    descriptor = os.open(workspace.secret, os.O_PATH)
    return read_descriptor(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY))


@attempt("read")
def path_only_then_empty_path(workspace: Workspace) -> Any:
    """O_PATH on the folder, openat below it"""
    descriptor = os.open(workspace.outside, os.O_PATH)
    return read_descriptor(os.open("secret.txt", os.O_RDONLY, dir_fd=descriptor))


@attempt("read")
def open_by_handle(workspace: Workspace) -> Any:
    """name_to_handle_at and open_by_handle_at: by inode, not by name"""
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 136)
    mount = ctypes.c_int()
    syscall(303, 264, AT_FDCWD, c_path(workspace.secret), handle, ctypes.byref(mount), 0)
    root = os.open("/", os.O_RDONLY)
    return read_descriptor(syscall(304, 265, root, handle, os.O_RDONLY))


@attempt("read")
def open_by_made_up_handle(workspace: Workspace) -> Any:
    """open_by_handle_at with a handle that is made up from the inode"""
    inode = os.stat(workspace.secret).st_ino
    handle = ctypes.create_string_buffer(struct.pack("=IiII", 8, 1, inode & 0xFFFFFFFF, 0), 136)
    root = os.open(workspace.inside, os.O_RDONLY)
    return read_descriptor(syscall(304, 265, root, handle, os.O_RDONLY))


@attempt("read")
def io_uring(workspace: Workspace) -> Any:
    """io_uring: the kernel opens and reads on behalf of a queue"""
    parameters = ctypes.create_string_buffer(120)
    ring = syscall(425, 425, 4, parameters)
    return f"a queue {ring} that opens files: {TOKEN}"


@attempt("read")
def thirty_two_bits(workspace: Workspace) -> Any:
    """int 0x80: the 32-bit table of system calls, which has other numbers"""
    if ARM:
        raise NotImplementedError
    code = bytes([0xCD, 0x80, 0xC3])
    low = LIBC.mmap
    low.restype = ctypes.c_void_p
    address = low(ctypes.c_void_p(0), ctypes.c_size_t(8192), 7, 0x62, -1, ctypes.c_long(0))
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError("no memory below 4 GiB")
    name = os.fsencode(workspace.secret) + b"\0"
    ctypes.memmove(address + 4096, name, len(name))
    # mov eax, 5 (open); mov ebx, name; xor ecx, ecx; xor edx, edx; int 0x80; ret
    program = b"\x53\xb8\x05\0\0\0\xbb" + struct.pack("=I", address + 4096)
    program += b"\x31\xc9\x31\xd2" + code[:2] + b"\x5b\xc3"
    ctypes.memmove(address, program, len(program))
    opened = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return read_descriptor(opened) if opened >= 0 else None


@attempt("read")
def x32_numbers(workspace: Workspace) -> Any:
    """x32: the calls under numbers with a high bit"""
    return read_descriptor(
        syscall(0x40000000 | 257, 56, AT_FDCWD, c_path(workspace.secret), os.O_RDONLY, 0)
    )


@attempt("read")
def mapped(workspace: Workspace) -> Any:
    """mmap of a file that is opened by a raw call"""
    descriptor = syscall(257, 56, AT_FDCWD, c_path(workspace.secret), os.O_RDONLY, 0)
    with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as memory:
        return memory[:].decode()


@attempt("read")
def inherited_descriptor(workspace: Workspace) -> Any:
    """pread on every descriptor that was open before"""
    found = [workspace.secret_fd, *range(3, 64)]
    for number in found:
        try:
            if TOKEN in (text := os.pread(number, 4096, 0).decode("utf-8", "replace")):
                return text
        except OSError:
            continue
    return None


@attempt("read")
def descriptor_by_proc(workspace: Workspace) -> Any:
    """/proc/self/fd/N of a descriptor that was open before"""
    with open(f"/proc/self/fd/{workspace.secret_fd}") as file:
        return file.read()


@attempt("read")
def folder_from_before(workspace: Workspace) -> Any:
    """openat below a folder that was open before"""
    return read_descriptor(os.open("secret.txt", os.O_RDONLY, dir_fd=workspace.folder_fd))


@attempt("read")
def hard_link_inside(workspace: Workspace) -> Any:
    """A hard link to the secret, made where reading is allowed"""
    os.link(workspace.secret, workspace.own("hard"))
    with open(workspace.own("hard")) as file:
        return file.read()


@attempt("read")
def renamed_inside(workspace: Workspace) -> Any:
    """The secret moved to where reading is allowed"""
    os.rename(workspace.secret, workspace.own("moved"))
    with open(workspace.own("moved")) as file:
        return file.read()


@attempt("read")
def exchanged(workspace: Workspace) -> Any:
    """renameat2 with RENAME_EXCHANGE: a file inside for the secret"""
    syscall(
        316, 276, AT_FDCWD, c_path(workspace.secret), AT_FDCWD, c_path(workspace.own("own.txt")), 2
    )
    with open(workspace.own("own.txt")) as file:
        return file.read()


@attempt("read")
def link_race(workspace: Workspace) -> Any:
    """A link that changes between two targets while it is opened"""
    inner, outer, link = workspace.own("own.txt"), workspace.secret, workspace.own("turning")
    for turn in range(400):
        draft = workspace.own("draft")
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
def folder_race(workspace: Workspace) -> Any:
    """A folder that is replaced by a link while a thread opens files in it"""
    import threading

    os.makedirs(workspace.own("way/real"))
    with open(workspace.own("way/real/secret.txt"), "w") as file:
        file.write("mine")
    os.symlink(workspace.outside, workspace.own("way/false"))
    found: list[str] = []

    def look() -> None:
        for _ in range(400):
            try:
                with open(workspace.own("way/step/secret.txt")) as file:
                    found.append(file.read())
            except OSError:
                pass

    thread = threading.Thread(target=look)
    thread.start()
    for turn in range(400):
        os.symlink("false" if turn % 2 else "real", workspace.own("way/next"))
        os.rename(workspace.own("way/next"), workspace.own("way/step"))
    thread.join()
    return next((text for text in found if TOKEN in text), None)


# ------------------------------------------------------------------ other processes


@attempt("read")
def memory_of_the_parent(workspace: Workspace) -> Any:
    """/proc/PPID/mem, where the parent's environment is"""
    parent = os.getppid()
    with open(f"/proc/{parent}/maps") as file:
        stack = next(line for line in file if "[stack]" in line)
    low, high = (int(end, 16) for end in stack.split()[0].split("-"))
    with open(f"/proc/{parent}/mem", "rb") as memory:
        memory.seek(low)
        return TOKEN if TOKEN.encode() in memory.read(high - low) else None


@attempt("read")
def environment_of_the_parent(workspace: Workspace) -> Any:
    """/proc/PPID/environ"""
    with open(f"/proc/{os.getppid()}/environ") as file:
        return file.read()


@attempt("read")
def descriptors_of_the_parent(workspace: Workspace) -> Any:
    """/proc/PPID/fd/N of the secret, which the parent has open"""
    with open(f"/proc/{os.getppid()}/fd/{workspace.secret_fd}") as file:
        return file.read()


@attempt("read")
def root_of_the_parent(workspace: Workspace) -> Any:
    """/proc/PPID/root leads outside"""
    with open(f"/proc/{os.getppid()}/root{workspace.secret}") as file:
        return file.read()


@attempt("read")
def cwd_of_the_parent(workspace: Workspace) -> Any:
    """/proc/PPID/cwd leads outside"""
    up = "../" * 12
    with open(f"/proc/{os.getppid()}/cwd/{up}{workspace.secret}") as file:
        return file.read()


@attempt("read")
def own_environment_in_proc(workspace: Workspace) -> Any:
    """/proc/self/environ, as it was at the start"""
    with open("/proc/self/environ") as file:
        return file.read()


@attempt("read")
def own_stack(workspace: Workspace) -> Any:
    """The initial environment in the memory of the stack"""
    with open("/proc/self/maps") as file:
        stack = next(line for line in file if "[stack]" in line)
    low, high = (int(end, 16) for end in stack.split()[0].split("-"))
    return TOKEN if TOKEN.encode() in ctypes.string_at(low, high - low) else None


@attempt("spawn")
def ptrace_the_parent(workspace: Workspace) -> Any:
    """PTRACE_SEIZE of the parent"""
    syscall(101, 117, 0x4206, os.getppid(), 0, 0)
    syscall(101, 117, 17, os.getppid(), 0, 0)
    return "spawned: a traced parent"


@attempt("read")
def memory_by_process_vm(workspace: Workspace) -> Any:
    """process_vm_readv of the parent"""
    buffer = ctypes.create_string_buffer(64)
    local = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(buffer), 16), 16)
    remote = ctypes.create_string_buffer(
        struct.pack("=QQ", ctypes.cast(LIBC.getpid, ctypes.c_void_p).value or 0, 16), 16
    )
    syscall(310, 270, os.getppid(), local, 1, remote, 1, 0)
    return f"memory of the parent: {TOKEN}"


@attempt("read")
def descriptor_by_pidfd(workspace: Workspace) -> Any:
    """pidfd_getfd: a descriptor of the parent"""
    parent = syscall(434, 434, os.getppid(), 0)
    return read_descriptor(syscall(438, 438, parent, workspace.secret_fd, 0))


@attempt("spawn")
def signal_the_parent(workspace: Workspace) -> Any:
    """kill(PPID, SIGURG), which is ignored by default"""
    os.kill(os.getppid(), signal.SIGURG)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_pidfd(workspace: Workspace) -> Any:
    """pidfd_send_signal"""
    syscall(424, 424, syscall(434, 434, os.getppid(), 0), signal.SIGURG, 0, 0)
    return "spawned: a signal"


@attempt("spawn")
def signal_the_group(workspace: Workspace) -> Any:
    """kill(0, 0): the whole group"""
    os.kill(0, 0)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_queue(workspace: Workspace) -> Any:
    """rt_sigqueueinfo"""
    info = ctypes.create_string_buffer(struct.pack("=iii", signal.SIGURG, 0, -1), 128)
    syscall(129, 138, os.getppid(), signal.SIGURG, info)
    return "spawned: a signal"


@attempt("spawn")
def signal_by_ownership(workspace: Workspace) -> Any:
    """F_SETOWN: data on a pipe causes a signal to the parent"""
    import fcntl

    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(reader, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writer, b"x")
    return "spawned: a signal"


@attempt("spawn")
def limits_of_the_parent(workspace: Workspace) -> Any:
    """prlimit: the number of open files of the parent"""
    import resource

    before = resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, before)
    return "spawned: a limit"


@attempt("spawn")
def priority_of_the_parent(workspace: Workspace) -> Any:
    """setpriority: a lower priority of the parent"""
    os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()))
    return "spawned: a priority"


@attempt("spawn")
def processors_of_the_parent(workspace: Workspace) -> Any:
    """sched_setaffinity of the parent"""
    os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))
    return "spawned: an affinity"


# ------------------------------------------------------------------ programs


@attempt("spawn")
def program_in_memory(workspace: Workspace) -> Any:
    """memfd_create and execveat: a program that is not a file"""
    descriptor = os.memfd_create("program")
    os.write(
        descriptor, b"#!/bin/sh\necho spawned > " + os.fsencode(workspace.own("spawned")) + b"\n"
    )
    argv = (ctypes.c_char_p * 2)(b"program", None)
    syscall(322, 281, descriptor, c_path(""), argv, None, 0x1000)
    return None


@attempt("spawn")
def raw_fork(workspace: Workspace) -> Any:
    """fork, as a raw system call"""
    child = syscall(57, 220, 17, 0, 0, 0, 0)
    if child == 0:
        with open(workspace.own("spawned"), "w") as file:
            file.write("spawned")
        os._exit(0)
    os.waitpid(child, 0)
    return "spawned"


@attempt("spawn")
def raw_clone(workspace: Workspace) -> Any:
    """clone without the flags of a thread"""
    child = syscall(56, 220, 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "spawned"


@attempt("spawn")
def raw_clone3(workspace: Workspace) -> Any:
    """clone3, whose flags a filter cannot read"""
    clone_args = ctypes.create_string_buffer(struct.pack("=8Q", 0, 0, 0, 0, 17, 0, 0, 0), 64)
    child = syscall(435, 435, clone_args, 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "spawned"


@attempt("spawn")
def raw_execve(workspace: Workspace) -> Any:
    """execve, as a raw system call, in this process"""
    text = f"echo spawned > {workspace.own('spawned')}".encode()
    argv = (ctypes.c_char_p * 4)(b"sh", b"-c", text, None)
    syscall(59, 221, c_path("/bin/sh"), argv, None)
    return None


# ------------------------------------------------------------------ mounts, roots, namespaces


@attempt("read")
def new_root(workspace: Workspace) -> Any:
    """chroot: the same file under another name"""
    os.chroot(workspace.outside)
    with open("/secret.txt") as file:
        return file.read()


@attempt("read")
def new_namespace(workspace: Workspace) -> Any:
    """unshare of user and mount namespaces, then a bind mount to where reading is allowed"""
    syscall(272, 97, 0x10000000 | 0x00020000)
    syscall(165, 40, c_path(workspace.outside), c_path(workspace.own("deep")), None, 4096, None)
    with open(workspace.own("deep/secret.txt")) as file:
        return file.read()


@attempt("read")
def bind_mount(workspace: Workspace) -> Any:
    """mount --bind"""
    syscall(165, 40, c_path(workspace.outside), c_path(workspace.own("deep")), None, 4096, None)
    try:
        with open(workspace.own("deep/secret.txt")) as file:
            return file.read()
    finally:
        syscall(166, 39, c_path(workspace.own("deep")), 2)


@attempt("read")
def tree_of_mounts(workspace: Workspace) -> Any:
    """open_tree with OPEN_TREE_CLONE, and openat below it"""
    descriptor = syscall(428, 428, AT_FDCWD, c_path(workspace.outside), 1)
    return read_descriptor(os.open("secret.txt", os.O_RDONLY, dir_fd=descriptor))


@attempt("write")
def device_node(workspace: Workspace) -> Any:
    """mknod of a block device inside; a file outside proves that it succeeded"""
    os.mknod(workspace.own("disk"), 0o060600, os.stat(workspace.outside).st_dev)
    with open(workspace.out("made-by-device"), "w") as file:
        file.write(CHANGED)
    return "made"


# ------------------------------------------------------------------ write


@attempt("write")
def raw_truncate(workspace: Workspace) -> Any:
    """truncate, as a raw system call: no file is opened"""
    return syscall(76, 45, c_path(workspace.victim), 0) == 0


@attempt("write")
def write_to_descriptor_from_before(workspace: Workspace) -> Any:
    """pwrite to a descriptor that was open before"""
    return os.pwrite(workspace.victim_fd, CHANGED.encode(), 0)


@attempt("write")
def splice_to_descriptor_from_before(workspace: Workspace) -> Any:
    """copy_file_range to a descriptor that was open before"""
    with open(workspace.own("own.txt"), "rb") as file:
        return os.copy_file_range(file.fileno(), workspace.victim_fd, 4)


@attempt("write")
def named_temporary(workspace: Workspace) -> Any:
    """O_TMPFILE outside, then linkat to a name"""
    descriptor = os.open(workspace.outside, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(descriptor, CHANGED.encode())
    os.link(f"/proc/self/fd/{descriptor}", workspace.out("made"), follow_symlinks=True)
    return "made"


@attempt("write")
def link_outside(workspace: Workspace) -> Any:
    """A hard link from inside to outside"""
    os.link(workspace.own("own.txt"), workspace.out("linked"))
    return "made"


@attempt("write")
def bound_socket(workspace: Workspace) -> Any:
    """bind of a unix socket: a name in a folder outside"""
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    syscall(
        49,
        200,
        ours.fileno(),
        struct.pack("=H", 1) + os.fsencode(workspace.out("bound")) + b"\0",
        90,
    )
    return "made"


@attempt("attributes")
def raw_chmod_at(workspace: Workspace) -> Any:
    """fchmodat2 with an empty path, on O_PATH"""
    descriptor = os.open(workspace.victim, os.O_PATH)
    return syscall(452, 452, descriptor, c_path(""), 0o777, 0x1000)


@attempt("attributes")
def chmod_by_proc(workspace: Workspace) -> Any:
    """chmod of /proc/self/fd/N, on O_PATH"""
    descriptor = os.open(workspace.victim, os.O_PATH)
    os.chmod(f"/proc/self/fd/{descriptor}", 0o777)
    return True


@attempt("attributes")
def owner_by_descriptor(workspace: Workspace) -> Any:
    """fchown of a descriptor that was open before"""
    os.fchown(workspace.victim_fd, 12345, 12345)
    return True


@attempt("attributes")
def times_by_descriptor(workspace: Workspace) -> Any:
    """futimens of a descriptor that was open before"""
    os.utime(workspace.victim_fd, (1, 1))
    return True


@attempt("attributes")
def flags_of_a_file(workspace: Workspace) -> Any:
    """FS_IOC_SETFLAGS: the immutable flag of a file"""
    import fcntl

    flags = array.array("i", [0])
    descriptor = os.open(workspace.own("own.txt"), os.O_RDONLY)
    fcntl.ioctl(descriptor, 0x80086601, flags)
    fcntl.ioctl(descriptor, 0x40086602, flags)
    os.chmod(workspace.victim, 0o777)
    return True


@attempt("attributes")
def attribute_by_new_call(workspace: Workspace) -> Any:
    """setxattrat, which is newer than the filter"""
    value = ctypes.create_string_buffer(b"x", 1)
    xattr_args = ctypes.create_string_buffer(struct.pack("=QII", ctypes.addressof(value), 1, 0), 16)
    name = c_path("user.evasion")
    return syscall(463, 463, AT_FDCWD, c_path(workspace.victim), 0, name, xattr_args, 16) == 0


@attempt("attributes")
def flags_by_new_call(workspace: Workspace) -> Any:
    """file_setattr, which is newer than the filter; then chmod, to prove the access"""
    file_attributes = ctypes.create_string_buffer(24)
    syscall(469, 469, AT_FDCWD, c_path(workspace.victim), file_attributes, 24, 0)
    os.chmod(workspace.victim, 0o777)
    return True


# ------------------------------------------------------------------ communication


@attempt("net")
def abstract_socket(workspace: Workspace) -> Any:
    """An abstract Unix socket, which has no path"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(f"\0evasion-{os.getpid()}")
    return "bound"


@attempt("net")
def packet_pair(workspace: Workspace) -> Any:
    """socketpair of datagrams, whose ends can be sent anywhere"""
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"hello", workspace.unix)
    return "bound"


@attempt("net")
def pair_reconnected(workspace: Workspace) -> Any:
    """A stream pair that is connected to another socket"""
    ours, _ = socket.socketpair()
    ours.connect(workspace.unix)
    ours.send(b"hello")
    return "bound"


@attempt("net")
def pair_with_an_address(workspace: Workspace) -> Any:
    """sendmsg with an address on a stream pair"""
    ours, _ = socket.socketpair()
    ours.sendmsg([b"hello"], [], 0, workspace.unix)
    return "bound"


@attempt("net")
def routing(workspace: Workspace) -> Any:
    """A netlink socket: addresses and routes"""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.bind((0, 0))
    return "bound"


@attempt("net")
def raw_packets(workspace: Workspace) -> Any:
    """A packet socket, which receives all network traffic"""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return "bound"


@attempt("net")
def virtual_machines(workspace: Workspace) -> Any:
    """A vsock to the host"""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return "bound"


@attempt("net")
def multipath(workspace: Workspace) -> Any:
    """MPTCP: TCP with another protocol number"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as stream:
        stream.connect(("127.0.0.1", workspace.tcp))
        stream.send(b"hello")
    return "bound"


@attempt("net")
def fast_open(workspace: Workspace) -> Any:
    """MSG_FASTOPEN: a connection without connect"""
    with socket.socket() as stream:
        stream.sendto(b"hello", 0x20000000, ("127.0.0.1", workspace.tcp))
    return "bound"


@attempt("net")
def socket_from_before(workspace: Workspace) -> Any:
    """A connection that was open before"""
    return "bound" if os.write(workspace.socket_fd, b"hello") else None


@attempt("net")
def descriptor_passed_on(workspace: Workspace) -> Any:
    """SCM_RIGHTS: an inherited connection that is sent to the same process"""
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [workspace.socket_fd])
    _, numbers, _, _ = socket.recv_fds(theirs, 1, 1)
    return "bound" if os.write(numbers[0], b"hello") else None


@attempt("net")
def shared_memory(workspace: Workspace) -> Any:
    """shmget: memory that others can attach to"""
    segment = syscall(29, 194, 0x7001, 4096, 0o1600)
    syscall(31, 195, segment, 0, 0)
    return "bound"


@attempt("net")
def semaphores(workspace: Workspace) -> Any:
    """semget"""
    semaphore_set = syscall(64, 190, 0x7001, 1, 0o1600)
    syscall(66, 191, semaphore_set, 0, 0)
    return "bound"


@attempt("net")
def message_queue(workspace: Workspace) -> Any:
    """msgget"""
    queue = syscall(68, 186, 0x7001, 0o1600)
    syscall(71, 187, queue, 0, 0)
    return "bound"


@attempt("net")
def posix_queue(workspace: Workspace) -> Any:
    """mq_open"""
    syscall(240, 180, c_path("evasion"), os.O_CREAT | os.O_RDWR, 0o600, None)
    syscall(241, 181, c_path("evasion"))
    return "bound"


@attempt("net")
def shared_folder(workspace: Workspace) -> Any:
    """shm_open: a file in /dev/shm"""
    from multiprocessing import shared_memory

    made = shared_memory.SharedMemory(create=True, size=64)
    made.close()
    made.unlink()
    return "bound"


@attempt("net")
def keyring(workspace: Workspace) -> Any:
    """add_key: the user's keyring"""
    syscall(248, 217, c_path("user"), c_path("evasion"), c_path("x"), 1, -3)
    return "bound"


# ------------------------------------------------------------------ the machine


@attempt("spawn")
def typed_into_the_terminal(workspace: Workspace) -> Any:
    """TIOCSTI: input is inserted into the terminal"""
    import fcntl

    try:
        fcntl.ioctl(0, 0x5412, b"x")
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def typed_with_high_bits(workspace: Workspace) -> Any:
    """TIOCSTI with bits above the 32 that the kernel reads"""
    try:
        syscall(16, 29, 0, 0x100005412, ctypes.create_string_buffer(b"x"))
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def program_for_the_kernel(workspace: Workspace) -> Any:
    """bpf"""
    try:
        syscall(321, 280, 0, 0, 0)
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def counters(workspace: Workspace) -> Any:
    """perf_event_open"""
    try:
        syscall(298, 241, 0, 0, -1, -1, 0)
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def faults(workspace: Workspace) -> Any:
    """userfaultfd"""
    syscall(323, 282, 1)
    return "spawned: faults are ours"


@attempt("spawn")
def other_personality(workspace: Workspace) -> Any:
    """personality: addresses without randomization"""
    syscall(135, 92, 0xFFFFFFFF)
    return "spawned: another personality"


@attempt("spawn")
def kernel_module(workspace: Workspace) -> Any:
    """finit_module"""
    try:
        syscall(313, 273, -1, c_path(""), 0)
    except OSError as refused:
        if refused.errno == errno.EPERM:
            raise
    return "spawned: the kernel was asked"


@attempt("spawn")
def clock(workspace: Workspace) -> Any:
    """clock_settime, with the current time"""
    import time

    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))
    return "spawned: the clock was set"


@attempt("spawn")
def privileges_again(workspace: Workspace) -> Any:
    """setuid to another user, which needs a privilege"""
    os.setresuid(12345, 12345, 12345)
    return "spawned: as another user"


@attempt("read")
def kernel_log(workspace: Workspace) -> Any:
    """syslog: the messages of the kernel"""
    buffer = ctypes.create_string_buffer(4096)
    syscall(103, 116, 3, buffer, 4096)
    return f"{TOKEN}: {buffer.raw[:80]!r}"


@attempt("read")
def disk_itself(workspace: Workspace) -> Any:
    """/dev/mem and the disks"""
    device = os.stat(workspace.outside).st_dev
    with open(f"/dev/block/{os.major(device)}:{os.minor(device)}", "rb") as file:
        file.read(1)
    return f"the disk: {TOKEN}"


@attempt("read")
def another_filter(workspace: Workspace) -> Any:
    """A second filter and a second ruleset that allow everything: neither removes the first"""
    allow = struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)
    text = ctypes.create_string_buffer(allow, 8)
    header = ctypes.create_string_buffer(struct.pack("=H6xQ", 1, ctypes.addressof(text)), 16)
    syscall(317, 277, 1, 0, header)
    attributes = ctypes.create_string_buffer(struct.pack("=Q", 4), 8)
    rules = syscall(444, 444, attributes, 8, 0)
    descriptor = os.open("/", os.O_PATH)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", 4, descriptor), 12)
    syscall(445, 445, rules, 1, rule, 0)
    syscall(446, 446, rules, 0)
    with open(workspace.secret) as file:
        return file.read()


@attempt("read")
def in_a_new_thread(workspace: Workspace) -> Any:
    """A thread that starts after the sandbox was entered"""
    import threading

    found: list[str] = []

    def look() -> None:
        with open(workspace.secret) as file:
            found.append(file.read())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found
