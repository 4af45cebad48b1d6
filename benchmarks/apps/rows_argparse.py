"""A stream of rows, written with argparse and a plain loop."""

import argparse
import json
import time
from collections.abc import Iterator


def rows(count: int, pause: float = 0.0) -> Iterator[dict[str, object]]:
    """Make rows, one after the other."""
    for number in range(count):
        if pause and number:
            time.sleep(pause)
        yield {"id": number, "name": f"row {number}", "even": number % 2 == 0}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="demo")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("rows", help="Make rows, one after the other.")
    one.add_argument("count", type=int)
    one.add_argument("--pause", type=float, default=0.0)
    one.add_argument("--jsonl", action="store_true")
    args = parser.parse_args()
    for row in rows(args.count, args.pause):
        print(json.dumps(row, separators=(",", ":")), flush=bool(args.pause))
