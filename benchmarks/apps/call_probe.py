"""Time `app.call` against the direct call of the same function: `call_probe.py MODULE NUMBER`."""

import importlib
import json
import sys
import timeit
from collections.abc import Callable
from time import process_time

LOOPS, REPEATS = 500, 60


def best_us(run: Callable[[], object]) -> float:
    """Microseconds of CPU of one run, the best of many short repeats."""
    return min(timeit.repeat(run, timer=process_time, number=LOOPS, repeat=REPEATS)) / LOOPS * 1e6


def main() -> None:
    """Print what one call costs, in microseconds."""
    module = importlib.import_module(sys.argv[1])
    number = int(sys.argv[2])
    direct = getattr(module, f"cmd_{number}")
    call, name = module.app.call, f"cmd-{number}"
    answer = call(name, name="bob", count=2)
    if not answer.ok or answer.result != direct(name="bob", count=2):
        raise SystemExit(f"app.call answered {answer!r}")
    through = best_us(lambda: call(name, name="bob", count=2))
    plain = best_us(lambda: direct(name="bob", count=2))
    print(json.dumps({"call_us": through, "direct_us": plain, "over_us": through - plain}))
