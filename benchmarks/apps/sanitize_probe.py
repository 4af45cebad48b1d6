"""Measure the sanitizer inside one process: `sanitize_probe.py KIND`."""

import json
import sys
from time import process_time

from tooli.text.sanitize import sanitize

ROUNDS = 10
TEXTS = {
    "clean": "2026-11-15 18:01:09 INFO src/main.py: 1204 bytes were read, nothing is wrong\n",
    "clean, many scripts": "größe – “text” … 日本語のテキスト हिन्दी می‌خواهم 👩‍👧 ❤️ 5 €\n",
    "dirty": "\x1b[32mINFO\x1b[0m src/main.py: 1204 bytes were read, n\u200bothing is wrong\n",
}


def main() -> None:
    """Print the throughput in megabytes per second."""
    line = TEXTS[sys.argv[1]]
    text = line * (4_000_000 // len(line.encode()))
    if (sanitize(text)[0] == text) is not sys.argv[1].startswith("clean"):
        raise SystemExit(f"unexpected result for the text {sys.argv[1]!r}")
    best = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        sanitize(text)
        best = min(best, process_time() - started)
    print(json.dumps({"mb_per_s": len(text.encode()) / 1e6 / best}))
