"""Programs for tests, and a short way to read and run them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tooli import Tooli
from tooli.core.tool import Tool
from tooli.providers import CLIProvider

NOTES = f"""#!{sys.executable}
import argparse, json, os, sys

parser = argparse.ArgumentParser(prog="notes", description="Keep notes.")
parser.add_argument("--store", default="notes.json", help="The file (%(default)s).")
commands = parser.add_subparsers(required=True, dest="command")
add = commands.add_parser("add", help="Add a note.")
add.add_argument("text")
add.add_argument("more", nargs="*")
add.add_argument("--tag", action="append")
add.add_argument("--level", type=int, choices=[1, 2, 3], default=1)
add.add_argument("--pin", action=argparse.BooleanOptionalAction)
add.add_argument("-v", "--verbose", action="count", default=0)
add.add_argument("--size", nargs=2, type=int)
add.add_argument("--color", nargs="?", const="auto")
add.add_argument("--api-token")
fail = commands.add_parser("fail", help="Fail.")
fail.add_argument("--code", type=int, default=1)
args = parser.parse_args()
if args.command == "fail":
    print("Traceback: it did not work", file=sys.stderr)
    sys.exit(args.code)
print(json.dumps(vars(args)))
"""

SHOP = f"""#!{sys.executable}
import click, sys, time

@click.group()
@click.option("--region", type=click.Choice(["eu", "us"]), default="eu", help="The region.")
@click.option("-v", "--verbose", count=True)
@click.pass_context
def shop(context, region, verbose):
    "Sell things."
    context.obj = region

@shop.command()
@click.argument("item")
@click.option("--amount", type=click.IntRange(1, 9), default=1, show_default=True)
@click.option("--gift/--no-gift", default=None)
@click.option("--verbose", is_flag=True)
@click.option("--label", nargs=2, type=(str, int))
@click.pass_obj
def order(region, item, amount, gift, verbose, label):
    "Order an item."
    click.echo(f"{{region}} {{item}} {{amount}} {{gift}} {{verbose}} {{label}}")

@shop.group("db", invoke_without_command=True)
@click.pass_context
def db(context):
    "The database."
    if context.invoked_subcommand is None:
        click.echo("all is well")

@db.command()
@click.option("--password", prompt=True, hide_input=True, envvar="SHOP_PASSWORD")
@click.option("--user", prompt=True, default="root")
def login(user, password):
    "Log in."
    click.secho(f"{{user}} {{password}} {{' '.join(sys.argv[3:])}}", fg="red")

@db.command(context_settings={{"ignore_unknown_options": True}})
@click.argument("file", type=click.File("r"))
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def load(file, rest):
    "Load a file."
    for line in file:
        click.echo('{{"line": "' + line.strip() + '", "rest": "' + " ".join(rest) + '"}}')

@db.command(hidden=True, deprecated=True)
@click.argument("seconds", type=float)
def wait(seconds):
    "Wait."
    click.echo("waiting")
    time.sleep(seconds)

if __name__ == "__main__":
    shop()
"""


def write(path: Path, text: str) -> Path:
    """Write a program and return its path."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def provide(path: Path, **options: Any) -> tuple[Tooli, CLIProvider]:
    """Return an app with the commands of a program, and their provider."""
    app = Tooli("desk")
    provider = CLIProvider(str(path), **options)
    app.add_provider(provider, namespace="x")
    return app, provider


def tools_by_key(provider: CLIProvider) -> dict[str, Tool]:
    """Return the tools of a provider."""
    return {tool.key: tool for tool in provider.tools()}
