"""Measure `app.call` and the direct call of the same function: `call_probe.py MODULE NUMBER`."""

import importlib
import json
import sys
import timeit
from collections.abc import Callable
from time import process_time

LOOPS, REPEATS = 500, 60


def best_us(run: Callable[[], object]) -> float:
    """Return the CPU time of one run in microseconds, the best of many repeats."""
    return min(timeit.repeat(run, timer=process_time, number=LOOPS, repeat=REPEATS)) / LOOPS * 1e6


def main() -> None:
    """Print the CPU time of a call in microseconds."""
    module = importlib.import_module(sys.argv[1])
    number = int(sys.argv[2])
    direct = getattr(module, f"cmd_{number}")
    call, name = module.app.call, f"cmd-{number}"
    answer = call(name, name="bob", count=2)
    if not answer.ok or answer.result != direct(name="bob", count=2):
        raise SystemExit(f"app.call answered {answer!r}")
    call_us = best_us(lambda: call(name, name="bob", count=2))
    direct_us = best_us(lambda: direct(name="bob", count=2))
    overhead_us = call_us - direct_us
    print(json.dumps({"call_us": call_us, "direct_us": direct_us, "overhead_us": overhead_us}))
