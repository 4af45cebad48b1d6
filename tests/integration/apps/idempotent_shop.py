"""A shop that records every payment, and programs that put its idempotency keys under load.

idempotent_shop.py race SEED KEYS                pay every order once, in random order
idempotent_shop.py spawn-killed NAME KILLS SEED  start children that pay until they are killed
idempotent_shop.py check LOGS…                   repeat every acknowledged payment
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from tooli import Tooli
from tooli.annotations import Idempotent, ReadOnly

app = Tooli("shop", version="1.0")
FOLDER = os.environ.get("SHOP", "")


def append(name: str, line: str) -> None:
    """Append a line to a file with one system call."""
    file = os.open(os.path.join(FOLDER, name), os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(file, line.encode() + b"\n")
    os.close(file)


@app.command()
def pay(order: str) -> dict[str, str]:
    """Pay an order. This must not happen twice."""
    receipt = os.urandom(6).hex()
    append("effects", f"{order} {receipt}")
    return {"order": order, "receipt": receipt}


@app.command(annotations=Idempotent)
def put(order: str) -> dict[str, str]:
    """Store an order. This may happen again."""
    append("effects", f"{order} put")
    if os.environ.get("DIE_AFTER") == order:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"order": order}


@app.command()
def stumble(order: str) -> dict[str, str]:
    """Take effect and be killed before the outcome is stored."""
    append("effects", f"{order} stumble")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@app.command(annotations=ReadOnly)
def look(order: str) -> str:
    """Look at an order."""
    append("effects", f"{order} look")
    return order


@app.command()
def lose(order: str) -> str:
    """Take effect and fail."""
    from tooli.errors import ConflictError

    append("effects", f"{order} lose")
    raise ConflictError(f"{order} is sold", code="E3777", details={"order": order}, exit_code=21)


@app.command()
def say(order: str):
    """Print the result."""
    append("effects", f"{order} say")
    print("paid", order)


@app.command()
def items(count: int):
    """Yield items."""
    append("effects", f"{count} items")
    for number in range(count):
        yield {"number": number}


@app.command()
def wait(order: str) -> str:
    """Take effect and wait forever."""
    append("effects", f"{order} wait")
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    signal.pause()
    return order


@app.command(auth=[])
def safe_pay(order: str) -> dict[str, str]:
    """Pay an order under the strict policy."""
    return pay(order)


@app.command()
def fill(order: str) -> str:
    """Take effect and fill the disk."""
    import resource

    append("effects", f"{order} fill")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return "done"


# ------------------------------------------------------------------ load


def race(seed: str, count: str) -> None:
    """Pay every order once, in competition with other processes."""
    orders = [f"o{number}" for number in range(int(count))]
    random.Random(seed).shuffle(orders)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    done = replayed = 0
    while orders:
        order = orders.pop()
        result = app.call("pay", order=order, idempotency_key=order)
        if result.error is not None and result.error.code == "E3051":
            orders.insert(0, order)
            continue
        paid = result.unwrap()
        append("receipts", f"{paid['order']} {paid['receipt']}")
        done += 1
        replayed += result.meta["idempotency"]["replayed"]
    print(done, replayed)


def spawn_killed(name: str, kills: str, seed: str) -> None:
    """Start children that pay and are killed at random times."""
    chance = random.Random(seed)
    _load()
    for _ in range(int(kills)):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _pay_until_killed(name, writing)
        os.close(writing)
        for _ in range(chance.randrange(1, 6)):
            if not os.read(reading, 1):
                break
        time.sleep(chance.random() * 0.012)  # in the store, in the effect, or between
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"a child ended by itself: {status}")
        os.close(reading)


def _load() -> None:
    """Import what every child needs. Nothing is opened."""
    import sqlite3

    import tooli.stages.idempotency
    import tooli.storage.idempotency_sqlite

    assert sqlite3 and tooli.storage.idempotency_sqlite
    if "TOOLI_STORE" in os.environ:
        import psycopg

        assert psycopg


def _pay_until_killed(name: str, writing: int) -> None:
    """Continue a little before the last child, which may not have logged its last payment."""
    try:
        path = os.path.join(FOLDER, f"acknowledged.{name}")
        before = open(path).read().splitlines() if os.path.exists(path) else []
        known = dict([line.split() for line in before if line.count(" ") == 1])
        number = max(0, len(before) - 2)
        while True:
            order = f"{name}-{number}"
            result = app.call("pay", order=order, idempotency_key=order)
            if result.ok:
                receipt = result.unwrap()["receipt"]
                if known.get(order, receipt) != receipt:
                    os._exit(3)
                append(f"acknowledged.{name}", f"{order} {receipt}")
            elif result.error is not None and result.error.code in ("E3052", "E3051"):
                append(f"acknowledged.{name}", f"{order} - unfinished")
            else:
                os._exit(4)
            number += 1
            os.write(writing, b".")
    finally:
        os._exit(5)


def check(*logs: str) -> None:
    """Repeat every acknowledged payment; print how many differ."""
    wrong = asked = 0
    for log in logs:
        known = [line.split() for line in open(os.path.join(FOLDER, log)).read().splitlines()]
        for order, receipt in [line for line in known if len(line) == 2]:
            result = app.call("pay", order=order, idempotency_key=order)
            asked += 1
            kept = result.ok and result.unwrap()["receipt"] == receipt
            wrong += not (kept and result.meta["idempotency"]["replayed"])
    print(asked, wrong)


if __name__ == "__main__":
    program = {"race": race, "spawn-killed": spawn_killed, "check": check}.get(
        sys.argv[1] if sys.argv[1:] else ""
    )
    if program is None:
        app()
    else:
        program(*sys.argv[2:])
