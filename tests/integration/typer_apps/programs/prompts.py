"""Commands that ask questions."""

import getpass
import sys
from pathlib import Path

import typer

app = typer.Typer()


@app.command()
def init(
    name: str = typer.Option("demo", prompt=True),
    port: int = typer.Option(8000, prompt="Which port"),
    use_git: bool = typer.Option(True, prompt="Use git?"),
):
    """Write settings."""
    Path("settings.txt").write_text(f"{name} {port} {use_git}\n")
    print("written")


@app.command()
def login(
    user: str = typer.Option(..., prompt=True),
    password: str = typer.Option(..., prompt=True, confirmation_prompt=True, hide_input=True),
):
    """Log in."""
    print(f"{user} {len(password)}")


@app.command()
def delete(
    name: str,
    force: bool = typer.Option(False, "--force", "-f", prompt="Are you sure?"),
):
    """Delete something."""
    print(f"deleted {name}" if force else "kept")


@app.command()
def confirm(target: str = "all"):
    """Confirm in the body."""
    typer.confirm(f"Remove {target}?", abort=True)
    print("removed")


@app.command()
def prompt():
    """Prompt in the body."""
    print("hello", typer.prompt("Your name", default="nobody"))


@app.command()
def builtin():
    """Call input."""
    print("got", input("Text: "))


@app.command()
def secret():
    """Call getpass."""
    print(len(getpass.getpass("Secret: ")))


@app.command()
def purge(force: bool = False):
    """Confirm unless a flag is given."""
    if not force:
        typer.confirm("Remove everything?", abort=True)
    print("purged")


@app.command()
def read():
    """Read stdin."""
    print(len(sys.stdin.read()))


@app.command()
def silent():
    """Read nothing."""
    print("done")


if __name__ == "__main__":
    app()
