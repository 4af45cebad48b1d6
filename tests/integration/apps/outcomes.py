"""An app whose commands return, fail, print or wait in every possible way."""

import os
import sys
import time
from collections.abc import AsyncIterator, Iterator

from tooli import Tooli
from tooli.errors import ConflictError, StateError, TemporaryError

app = Tooli("outcomes", version="1.2.3", description="Commands with every kind of outcome.")


def ready() -> None:
    """Report on stderr that the command is about to wait."""
    os.write(2, b"ready\n")


# ------------------------------------------------------------------ results and failures


@app.command()
def add(a: int, b: int, times: int = 1) -> int:
    """Add two numbers."""
    return (a + b) * times


@app.command()
def crash() -> int:
    """Raise an unexpected exception."""
    raise ZeroDivisionError("by \N{SNOWMAN}")


@app.command()
def crash_bare() -> int:
    """Raise an exception that has no text."""

    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

        __repr__ = __str__

    raise UnprintableError


@app.command()
def crash_base() -> int:
    """Raise a BaseException."""

    class CustomBaseException(BaseException):
        pass

    raise CustomBaseException("custom")


@app.command()
def crash_late() -> Iterator[dict]:
    """Yield ten items, then fail."""
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
    """Raise CancelledError in a coroutine."""
    import asyncio

    raise asyncio.CancelledError


@app.command()
async def crash_async_late() -> AsyncIterator[dict]:
    """Yield ten items, then fail."""
    for i in range(10):
        yield {"i": i}
    raise ValueError("after ten")


@app.command()
def endless() -> Iterator[dict]:
    """Yield items forever."""
    i = 0
    while True:
        yield {"i": i, "text": "x" * 100}
        i += 1


@app.command()
def missing_file() -> str:
    """Read a file that does not exist."""
    with open("/nowhere/at/all") as file:
        return file.read()


@app.command()
def conflict() -> str:
    """Fail with a ConflictError."""
    raise ConflictError("it moved", details={"was": {1, 2}, "at": b"\xff"})


@app.command()
def own_code() -> str:
    """Fail with an error code that the app defines."""
    raise StateError("no files", code="E3001", field="pattern")


@app.command()
def temporary() -> str:
    """Fail with a TemporaryError."""
    raise TemporaryError("later")


@app.command()
def leave(code: str) -> int:
    """Call sys.exit."""
    sys.exit(int(code) if code.lstrip("-").isdigit() else code)


@app.command()
def broken_socket() -> str:
    """Fail with a BrokenPipeError that has nothing to do with stdout."""
    raise BrokenPipeError(32, "Broken pipe")


@app.command()
def big(size: int) -> str:
    """Return a large result."""
    ready()
    return "x" * size


# ------------------------------------------------------------------ printing


@app.command()
def noise(kind: str) -> dict:
    """Write to stdout in the given way, and return a result."""
    make_noise(kind)
    return {"answer": 42}


@app.command()
def noisy_stream(kind: str) -> Iterator[int]:
    """Write to stdout between items."""
    for i in range(3):
        make_noise(kind)
        yield i


@app.command()
async def noisy_async(kind: str) -> dict:
    """Write to stdout in a coroutine."""
    make_noise(kind)
    return {"answer": 42}


def make_noise(kind: str) -> None:
    """Write to stdout: from Python, from C, from a child process, or at exit."""
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
    """Print, as a Typer command does."""
    print(word, flush=True)
    if child:
        os.system("echo from a child")
        os.write(1, b"from os.write\n")


@app.command()
def say_and_fail():
    """Print, then fail."""
    print("so far")
    raise ValueError("failed")


@app.command()
def say_much(megabytes: int):
    """Print a lot."""
    block = "0123456789abcdef" * 65536
    for _ in range(megabytes):
        sys.stdout.write(block)


@app.command()
def say_little():
    """Print a text that stays in the buffer until the end."""
    print("hello")


@app.command()
def say_raw():
    """Print bytes that are not UTF-8."""
    sys.stdout.flush()
    os.write(1, b"\xff\xfe raw\n")


@app.command()
def say_and_return():
    """Print, and return a value without an annotation."""
    print("printed")
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
    """Wait in a busy loop."""
    ready()
    while True:
        pass


@app.command()
async def sleep_async() -> int:
    """Wait in a coroutine."""
    import asyncio

    ready()
    await asyncio.sleep(600)
    return 0


@app.command()
async def spin_async() -> int:
    """Keep the event loop busy with callbacks."""
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
    """Yield three items, then wait."""
    for i in range(3):
        yield {"i": i}
    ready()
    time.sleep(600)


@app.command()
async def stream_async_then_sleep() -> AsyncIterator[dict]:
    """Yield three items, then wait in a coroutine."""
    import asyncio

    for i in range(3):
        yield {"i": i}
    ready()
    await asyncio.sleep(600)


@app.command()
def sleep_with_cleanup(log: str) -> int:
    """Wait, and write a file in a `finally` block."""
    try:
        ready()
        time.sleep(600)
    finally:
        with open(log, "w") as file:
            file.write("cleaned up")
    return 0


@app.command()
def linger() -> int:
    """Return at once, then wait in an exit handler."""
    import atexit

    def wait() -> None:
        ready()
        time.sleep(600)

    atexit.register(wait)
    return 1


if __name__ == "__main__":
    app()
