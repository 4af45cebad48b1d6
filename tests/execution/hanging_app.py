"""An app whose commands hang in different ways. Tests run it as a process."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator

from tooli import Context, SecretInput, StdinOr, Tooli
from tooli.cli import process
from tooli.inputs.output import Output

app = Tooli("hangs", version="1.0")
LONG = 1000.0
if "AGENT_SECONDS" in os.environ:
    process.AGENT_TIMEOUT_SECONDS = float(os.environ["AGENT_SECONDS"])
if "IGNORE_CHILDREN" in os.environ:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if "HANG_AT_EXIT" in os.environ:
    atexit.register(time.sleep, LONG)


def sleep_until_signal() -> None:
    """Sleep in short steps.

    A signal that arrives immediately before a sleep does not interrupt it: CPython runs the handler
    when the sleep ends.
    """
    while True:
        time.sleep(0.05)


def sleep_forever() -> None:
    """Run as an abandoned process."""
    while True:
        time.sleep(LONG)


@app.command()
def busy() -> str:
    while True:
        pass


@app.command()
def sleep() -> str:
    time.sleep(LONG)
    return "awake"


@app.command()
def uninterruptible() -> str:
    while True:
        try:
            time.sleep(LONG)
        except BaseException:
            continue


@app.command()
def blocked_signals() -> str:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(LONG)
    return "awake"


@app.command()
def read_stdin() -> str:
    return sys.stdin.read()


@app.command()
def accept() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.accept()
    return "somebody came"


@app.command()
def receive() -> str:
    left, right = socket.socketpair()
    with left, right:
        return left.recv(1).hex()


@app.command()
def run_sleep() -> str:
    subprocess.run(["sleep", "1000"], check=True)
    return "awake"


@app.command()
def run_shell() -> str:
    subprocess.run("sleep 1000 | cat | cat", shell=True, check=True)
    return "awake"


@app.command()
def grandchild() -> str:
    """Start a process in its own session that ignores signals."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    time.sleep(LONG)
    return "awake"


@app.command()
def daemon(returns: bool = False) -> str:
    """Start a daemon that has no parent below this process."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for stream in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            os.closerange(3, 256)  # as daemons do
            sleep_forever()
        os._exit(0)
    os.wait()
    if not returns:
        time.sleep(LONG)
    return "left"


@app.command()
def deadlock() -> str:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
    return "unlocked"


@app.command()
def thread_after_return() -> str:
    threading.Thread(target=sleep_forever).start()
    return "returned"


@app.command()
async def blocked_loop() -> str:
    time.sleep(LONG)
    return "awake"


@app.command()
async def uncancellable_task() -> str:
    while True:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            continue


@app.command()
async def task() -> str:
    await asyncio.sleep(LONG)
    return "awake"


@app.command()
def stream() -> Iterator[dict[str, int]]:
    for i in range(3):
        yield {"i": i}
    time.sleep(LONG)


@app.command()
async def async_stream() -> AsyncIterator[dict[str, int]]:
    for i in range(3):
        yield {"i": i}
    await asyncio.sleep(LONG)


@app.command()
def c_code() -> str:
    import ctypes

    ctypes.PyDLL(None).sleep(1000)  # while it holds the GIL
    return "awake"


@app.command()
def regex() -> str:
    import re

    return str(re.match(r"(a|aa|aaa)+$", "a" * 100 + "b"))


@app.command()
def at_exit() -> str:
    atexit.register(sleep_forever)
    return "returned"


# ------------------------------------------------------------------ partial results


@app.command()
def quick(word: str = "done", ctx: Context = None) -> str:  # type: ignore[assignment]
    ctx.warn("be quick")
    return word


@app.command()
def ask(ctx: Context) -> str:
    ctx.report(1, 2)
    ctx.log("asking", level="warning")
    return "agreed" if ctx.confirm("Go on?") else "declined"


@app.command()
def write(to: Output, hangs: bool = True) -> str:
    to.write_text("half")
    if hangs:
        time.sleep(LONG)
    return "written"


@app.command()
def say_and_sleep() -> None:
    print("printed before")
    time.sleep(LONG)


@app.command()
def ready_and_sleep() -> str:
    print("ready", file=sys.stderr, flush=True)
    sleep_until_signal()
    return "awake"


@app.command()
def partial() -> str:
    try:
        print("ready", file=sys.stderr, flush=True)
        sleep_until_signal()
    except KeyboardInterrupt:
        return "partial result"
    return "awake"


@app.command()
def ignore() -> str:
    """Print a line before each wait, and ignore interrupts."""
    while True:
        try:
            print("ready", file=sys.stderr, flush=True)
            sleep_until_signal()
        except KeyboardInterrupt:
            continue


@app.command()
def nested() -> str | None:
    error = app.call("sleep", timeout=0.2).error
    return error and error.code


@app.command()
def read(text: StdinOr[str], secret: SecretInput[str]) -> str:
    return text.strip() + secret.reveal()[::-1]


@app.command()
def exit_process(code: int = 4) -> str:
    os._exit(code)


@app.command()
def fork_repeatedly() -> str:
    """Fork new processes, for a limited time, while they are searched for and killed."""
    until = time.monotonic() + 5
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while time.monotonic() < until and os.fork() == 0:
                    time.sleep(0.01)
                time.sleep(30)
            os._exit(0)
    time.sleep(LONG)
    return "awake"


@app.command()
def rows(count: int = 10**9) -> Iterator[int]:
    yield from range(count)


@app.command()
def die(number: int = 11) -> str:
    os.kill(os.getpid(), number)
    return "alive"


@app.command(timeout=0.4)
def declared(seconds: float = LONG) -> str:
    time.sleep(seconds)
    return "awake"


if __name__ == "__main__":
    app()
