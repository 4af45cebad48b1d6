"""The two-command app, written with argparse, with the same arguments and JSON output."""

import argparse
import json
import time


def hello(name: str, count: int = 1) -> str:
    """Greet somebody."""
    return " ".join(["hello", name] * count)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def run_hello(args: argparse.Namespace) -> str:
    """Hand the parsed values over."""
    return hello(args.name, args.count)


def run_add(args: argparse.Namespace) -> int:
    """Hand the parsed values over."""
    return add(args.a, args.b)


def build_parser() -> argparse.ArgumentParser:
    """Describe both commands."""
    parser = argparse.ArgumentParser(prog="demo")
    parser.add_argument("--version", action="version", version="1.0.0")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("hello", help="Greet somebody.")
    one.add_argument("name")
    one.add_argument("--count", type=int, default=1)
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_hello)
    two = commands.add_parser("add", help="Add two numbers.")
    two.add_argument("a", type=int)
    two.add_argument("b", type=int)
    two.add_argument("--json", action="store_true")
    two.set_defaults(run=run_add)
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
