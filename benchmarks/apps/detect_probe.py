"""Measure the detection of the caller inside one process: `detect_probe.py CALLER`."""

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
    """Print the CPU time of one detection in microseconds."""
    caller = sys.argv[1]
    os.environ.update(CALLERS[caller])
    detected = detect_execution_context()
    if detected.is_agent is (caller == "nobody"):
        raise SystemExit(f"{caller} was detected as {detected!r}")
    durations = timeit.repeat(
        detect_execution_context, timer=process_time, number=LOOPS, repeat=REPEATS
    )
    print(json.dumps({"detect_us": min(durations) / LOOPS * 1e6}))
