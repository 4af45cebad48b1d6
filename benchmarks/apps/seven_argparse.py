"""The seven-parameter app, written with argparse."""

import argparse
import json
import time
from enum import Enum
from pathlib import Path


class Mode(Enum):
    """How careful to be."""

    FAST = "fast"
    SAFE = "safe"


def convert(args: argparse.Namespace) -> dict[str, object]:
    """Show what arrived."""
    return {
        "name": args.name,
        "count": args.count,
        "verbose": args.verbose,
        "path": str(args.path),
        "mode": args.mode.value,
        "tag": args.tag,
        "note": args.note,
    }


def ping(args: argparse.Namespace) -> str:
    """Answer."""
    return "pong"


def build_parser() -> argparse.ArgumentParser:
    """Describe both commands."""
    parser = argparse.ArgumentParser(prog="demo")
    parser.add_argument("--version", action="version", version="1.0.0")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("convert", help="Show what arrived.")
    one.add_argument("name")
    one.add_argument("--count", type=int, default=1)
    one.add_argument("--verbose", action=argparse.BooleanOptionalAction, default=False)
    one.add_argument("--path", type=Path, default=Path("."))
    one.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.SAFE)
    one.add_argument("--tag", action="append", default=[])
    one.add_argument("--note")
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=convert)
    two = commands.add_parser("ping", help="Answer.")
    two.add_argument("--json", action="store_true")
    two.set_defaults(run=ping)
    return parser


def main() -> None:
    """Run the command line."""
    args = build_parser().parse_args()
    start = time.perf_counter()
    result = args.run(args)
    if not args.json:
        print(result)
        return
    took = int((time.perf_counter() - start) * 1000)
    meta = {"tool": f"demo.{args.command}", "version": "1.0.0", "duration_ms": took}
    print(json.dumps({"ok": True, "result": result, "meta": meta}, separators=(",", ":")))
