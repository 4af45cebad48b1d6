"""Commands that print, in every way that Typer apps declare their return type."""

import sys
from typing import Any, NoReturn

import typer

app = typer.Typer(help="Print things.")
users = typer.Typer(help="Work with users.")
app.add_typer(users, name="users")


@app.command()
def plain(name: str = "World"):
    """Print and declare nothing."""
    typer.echo(f"Hello {name}")


@app.command()
def nothing(count: int = typer.Option(1, "--count", "-c", min=1, max=3)) -> None:
    """Print and declare None."""
    print("none " * count)


@app.command()
def returns():
    """Print and return a value."""
    print("printed")
    return {"returned": True}


@app.command()
def anything() -> Any:
    """Print and declare Any."""
    print("printed")
    return ["returned"]


@app.command()
def thing() -> object:
    """Print and declare object."""
    print("printed")
    return 42


@app.command()
def leave(code: int = 3) -> NoReturn:
    """Print and exit."""
    print("leaving")
    sys.exit(code)


@app.command()
def quoted() -> "Any":
    """Print and declare a quoted Any."""
    print("printed")
    return 1


@app.command()
def code() -> None:
    """Exit with typer.Exit."""
    typer.echo("to stderr", err=True)
    raise typer.Exit(4)


@app.command()
def abort() -> None:
    """Abort."""
    raise typer.Abort


@app.command()
def bad() -> None:
    """Reject a parameter."""
    raise typer.BadParameter("no good")


@app.command()
def missing() -> None:
    """Fail with an error of the operating system."""
    open("/does/not/exist")


@app.command()
def crash() -> None:
    """Fail with an exception."""
    print("before")
    raise ValueError("broken")


@app.command()
def escape() -> None:
    """Fail with a control character in the message."""
    raise ValueError("\x1b[31mred")


@app.command(deprecated=True)
def old() -> None:
    """Print from a deprecated command."""
    print("old")


@users.command()
def create(name: str, admin: bool = False) -> None:
    """Create a user."""
    typer.secho(f"created {name} {admin}", fg="green")


if __name__ == "__main__":
    app()
