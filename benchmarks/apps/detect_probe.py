"""Time one look at who is calling, inside one process: `detect_probe.py WHO`."""

import json
import os
import sys
import timeit
from time import process_time

from tooli.detect import detect_execution_context

LOOPS, REPEATS = 200, 30
CALLERS = {
    "nobody": {},
    "tooli-caller": {"TOOLI_CALLER": "claude-code"},
    "claude-code": {"CLAUDECODE": "1", "AI_AGENT": "claude-code_2-1-325_agent"},
}


def main() -> None:
    """Print what one look costs, in microseconds."""
    who = sys.argv[1]
    os.environ.update(CALLERS[who])
    seen = detect_execution_context()
    if seen.is_agent is (who == "nobody"):
        raise SystemExit(f"{who} was taken for {seen!r}")
    rounds = timeit.repeat(
        detect_execution_context, timer=process_time, number=LOOPS, repeat=REPEATS
    )
    print(json.dumps({"look_us": min(rounds) / LOOPS * 1e6}))
