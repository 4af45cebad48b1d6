"""An app with a command for every way to fail, to print, to wait and to answer."""

import os
import sys
import time
from collections.abc import AsyncIterator, Iterator

from tooli import Tooli
from tooli.errors import ConflictError, StateError, TemporaryError

app = Tooli("every", version="1.2.3", description="Every way to end.")


def ready() -> None:
    """Tell the test, on stderr, that the waiting begins."""
    os.write(2, b"ready\n")


# ------------------------------------------------------------------ ends


@app.command()
def add(a: int, b: int, times: int = 1) -> int:
    """Add two numbers."""
    return (a + b) * times


@app.command()
def crash() -> int:
    """Raise what nobody expected."""
    raise ZeroDivisionError("by \N{SNOWMAN}")


@app.command()
def crash_bare() -> int:
    """Raise an exception that cannot be written."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

        __repr__ = __str__

    raise Mute


@app.command()
def crash_base() -> int:
    """Raise what is no Exception."""

    class Beyond(BaseException):
        pass

    raise Beyond("beyond")


@app.command()
def crash_late() -> Iterator[dict]:
    """Ten items, then an exception."""
    for i in range(10):
        yield {"i": i}
    raise ValueError("after ten")


@app.command()
async def crash_async() -> int:
    """Raise in a coroutine."""
    import asyncio

    await asyncio.sleep(0)
    raise ValueError("in a coroutine")


@app.command()
async def cancelled() -> int:
    """A coroutine that cancels itself."""
    import asyncio

    raise asyncio.CancelledError


@app.command()
async def crash_async_late() -> AsyncIterator[dict]:
    """Ten items, then an exception."""
    for i in range(10):
        yield {"i": i}
    raise ValueError("after ten")


@app.command()
def endless() -> Iterator[dict]:
    """Items without an end."""
    i = 0
    while True:
        yield {"i": i, "text": "x" * 100}
        i += 1


@app.command()
def missing_file() -> str:
    """Read what does not exist."""
    with open("/nowhere/at/all") as file:
        return file.read()


@app.command()
def conflict() -> str:
    """Fail with an error of the tree."""
    raise ConflictError("it moved", details={"was": {1, 2}, "at": b"\xff"})


@app.command()
def own_code() -> str:
    """Fail with a code of the app's own."""
    raise StateError("no files", code="E3001", field="pattern")


@app.command()
def temporary() -> str:
    """Fail for now."""
    raise TemporaryError("later")


@app.command()
def leave(code: str) -> int:
    """Call sys.exit."""
    sys.exit(int(code) if code.lstrip("-").isdigit() else code)


@app.command()
def broken_socket() -> str:
    """Lose a connection that has nothing to do with stdout."""
    raise BrokenPipeError(32, "Broken pipe")


@app.command()
def big(size: int) -> str:
    """A large result."""
    ready()
    return "x" * size


# ------------------------------------------------------------------ noise


@app.command()
def noise(kind: str) -> dict:
    """Make noise on stdout in one way or another, and answer."""
    make_noise(kind)
    return {"answer": 42}


@app.command()
def noisy_stream(kind: str) -> Iterator[int]:
    """Make noise between items."""
    for i in range(3):
        make_noise(kind)
        yield i


@app.command()
async def noisy_async(kind: str) -> dict:
    """Make noise on a loop."""
    make_noise(kind)
    return {"answer": 42}


def make_noise(kind: str) -> None:
    """Write to stdout: from Python, from below Python, from a child, late."""
    import subprocess
    import threading

    if kind == "print":
        print("NOISE", flush=True)
    elif kind == "unflushed":
        print("NOISE", end="")
    elif kind == "write":
        os.write(1, b"NOISE\n")
    elif kind == "dunder":
        sys.__stdout__.write("NOISE")
    elif kind == "buffer":
        sys.stdout.buffer.write(b"NOISE")
    elif kind == "child":
        subprocess.run(["echo", "NOISE"], check=True)
    elif kind == "shell":
        os.system("echo NOISE")
    elif kind == "c":
        import ctypes

        libc = ctypes.CDLL(None)
        libc.puts(b"NOISE")  # stays in C's buffer until the process ends
    elif kind == "thread":
        import atexit

        done = threading.Event()
        late = threading.Thread(target=lambda: (done.wait(), print("NOISE", flush=True)))
        late.start()
        threading._register_atexit(done.set)  # after the answer, before the thread is joined
        atexit.register(print, "NOISE")
    elif kind == "atexit":
        import atexit

        atexit.register(print, "NOISE", flush=True)
        atexit.register(os.write, 1, b"NOISE\n")
        atexit.register(os.system, "echo NOISE")
    elif kind == "swap":
        import io

        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8")
        print("NOISE", flush=True)
    elif kind == "stderr":
        sys.stdout.flush()
        os.system("echo NOISE >&2")
        if sys.stderr is not None:
            print("NOISE", file=sys.stderr)
    elif kind == "close":
        sys.stdout.close()
    elif kind == "fork":
        if os.fork() == 0:
            sys.exit(3)
        os.wait()


@app.command()
def say(word: str = "hello", child: bool = False):
    """Print, as every Typer command does."""
    print(word, flush=True)
    if child:
        os.system("echo from a child")
        os.write(1, b"from below\n")


@app.command()
def say_and_fail():
    """Print, then fail."""
    print("so far")
    raise ValueError("no further")


@app.command()
def say_much(megabytes: int):
    """Print a lot."""
    block = "0123456789abcdef" * 65536
    for _ in range(megabytes):
        sys.stdout.write(block)


@app.command()
def say_little():
    """Print so little that it waits in a buffer until the end."""
    print("hello")


@app.command()
def say_raw():
    """Print what is not UTF-8."""
    sys.stdout.flush()
    os.write(1, b"\xff\xfe raw\n")


@app.command()
def say_and_return():
    """Print and return, undeclared."""
    print("spoken")
    return {"returned": 1}


# ------------------------------------------------------------------ waiting


@app.command()
def sleep() -> int:
    """Wait in a system call."""
    ready()
    time.sleep(600)
    return 0


@app.command()
def say_and_sleep():
    """Print, then wait."""
    print("so far", flush=True)
    ready()
    time.sleep(600)


@app.command()
def spin() -> int:
    """Wait in Python."""
    ready()
    while True:
        pass


@app.command()
async def sleep_async() -> int:
    """Wait on a loop."""
    import asyncio

    ready()
    await asyncio.sleep(600)
    return 0


@app.command()
async def spin_async() -> int:
    """Be busy on a loop, in callbacks."""
    import asyncio

    loop = asyncio.get_running_loop()

    def again() -> None:
        loop.call_soon(again)

    again()
    ready()
    await asyncio.sleep(600)
    return 0


@app.command()
def stream_then_sleep() -> Iterator[dict]:
    """Three items, then a wait."""
    for i in range(3):
        yield {"i": i}
    ready()
    time.sleep(600)


@app.command()
async def stream_async_then_sleep() -> AsyncIterator[dict]:
    """Three items, then a wait on a loop."""
    import asyncio

    for i in range(3):
        yield {"i": i}
    ready()
    await asyncio.sleep(600)


@app.command()
def tidy_sleep(log: str) -> int:
    """Wait, and tidy up however it ends."""
    try:
        ready()
        time.sleep(600)
    finally:
        with open(log, "w") as file:
            file.write("tidied")
    return 0


@app.command()
def linger() -> int:
    """Answer at once, then wait while the process ends."""
    import atexit

    def wait() -> None:
        ready()
        time.sleep(600)

    atexit.register(wait)
    return 1


if __name__ == "__main__":
    app()
