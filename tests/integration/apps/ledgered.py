"""A shop in which every payment is written down once it is made, and what hammers at it.

ledgered.py race SEED KEYS              every key once, in an order of its own
ledgered.py nursery LANE KILLS SEED     children that pay until they are killed, one after another
ledgered.py check LOGS…                 what was acknowledged, asked for again
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
ROOM = os.environ.get("SHOP", "")


def note(name: str, line: str) -> None:
    """Append a line to a file, in one piece."""
    file = os.open(os.path.join(ROOM, name), os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(file, line.encode() + b"\n")
    os.close(file)


@app.command()
def pay(order: str) -> dict[str, str]:
    """Pay an order: the effect that must not happen twice."""
    receipt = os.urandom(6).hex()
    note("effects", f"{order} {receipt}")
    return {"order": order, "receipt": receipt}


@app.command(annotations=Idempotent)
def put(order: str) -> dict[str, str]:
    """Put an order down: it may be done again."""
    note("effects", f"{order} put")
    if os.environ.get("DIE_AFTER") == order:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"order": order}


@app.command()
def stumble(order: str) -> dict[str, str]:
    """Take effect, and die before anybody knows."""
    note("effects", f"{order} stumble")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@app.command(annotations=ReadOnly)
def look(order: str) -> str:
    """Look at an order."""
    note("effects", f"{order} look")
    return order


@app.command()
def lose(order: str) -> str:
    """Take effect, and fail."""
    from tooli.errors import ConflictError

    note("effects", f"{order} lose")
    raise ConflictError(f"{order} is sold", code="E3777", details={"order": order}, exit_code=21)


@app.command()
def say(order: str):
    """Print, as commands do."""
    note("effects", f"{order} say")
    print("paid", order)


@app.command()
def items(count: int):
    """Give items one by one."""
    note("effects", f"{count} items")
    for number in range(count):
        yield {"number": number}


@app.command()
def wait(order: str) -> str:
    """Take effect, and wait for ever."""
    note("effects", f"{order} wait")
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    signal.pause()
    return order


@app.command(auth=[])
def safe_pay(order: str) -> dict[str, str]:
    """Pay an order, where the policy is strict."""
    return pay(order)


@app.command()
def fill(order: str) -> str:
    """Take effect, and leave no room for anything else."""
    import resource

    note("effects", f"{order} fill")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return "done"


# ------------------------------------------------------------------ hammering


def race(seed: str, count: str) -> None:
    """Pay every order once, as one of many who do."""
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
        note("receipts", f"{paid['order']} {paid['receipt']}")
        done += 1
        replayed += result.meta["idempotency"]["replayed"]
    print(done, replayed)


def nursery(lane: str, kills: str, seed: str) -> None:
    """Bring up children that pay and are killed, at any moment."""
    chance = random.Random(seed)
    _load()
    for _ in range(int(kills)):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _pay_for_ever(lane, writing)
        os.close(writing)
        for _ in range(chance.randrange(1, 6)):
            if not os.read(reading, 1):
                break
        time.sleep(chance.random() * 0.012)  # any moment: in the ledger, in the effect, between
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"a child ended by itself: {status}")
        os.close(reading)


def _load() -> None:
    """Load what every child would load by itself, each time anew; nothing is opened."""
    import sqlite3

    import tooli.stages.idempotency_key
    import tooli.storage.idempotency_sqlite

    assert sqlite3 and tooli.storage.idempotency_sqlite
    if "TOOLI_STORE" in os.environ:
        import psycopg

        assert psycopg


def _pay_for_ever(lane: str, writing: int) -> None:
    """Go on where the last one was: a little before, for it may not have known how far it was."""
    try:
        path = os.path.join(ROOM, f"acknowledged.{lane}")
        before = open(path).read().splitlines() if os.path.exists(path) else []
        known = dict([line.split() for line in before if line.count(" ") == 1])
        number = max(0, len(before) - 2)
        while True:
            order = f"{lane}-{number}"
            result = app.call("pay", order=order, idempotency_key=order)
            if result.ok:
                receipt = result.unwrap()["receipt"]
                if known.get(order, receipt) != receipt:
                    os._exit(3)
                note(f"acknowledged.{lane}", f"{order} {receipt}")
            elif result.error is not None and result.error.code in ("E3052", "E3051"):
                note(f"acknowledged.{lane}", f"{order} - open")
            else:
                os._exit(4)
            number += 1
            os.write(writing, b".")
    finally:
        os._exit(5)


def check(*logs: str) -> None:
    """Ask for everything that was acknowledged; says what is not as it was."""
    wrong = asked = 0
    for name in logs:
        known = [line.split() for line in open(os.path.join(ROOM, name)).read().splitlines()]
        for order, receipt in [line for line in known if len(line) == 2]:
            result = app.call("pay", order=order, idempotency_key=order)
            asked += 1
            kept = result.ok and result.unwrap()["receipt"] == receipt
            wrong += not (kept and result.meta["idempotency"]["replayed"])
    print(asked, wrong)


if __name__ == "__main__":
    work = {"race": race, "nursery": nursery, "check": check}.get(
        sys.argv[1] if sys.argv[1:] else ""
    )
    if work is None:
        app()
    else:
        work(*sys.argv[2:])
