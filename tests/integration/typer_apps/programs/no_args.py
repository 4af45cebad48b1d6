"""no_args_is_help on the app, on a group and on a command."""

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False)
sub = typer.Typer(no_args_is_help=True)
app.add_typer(sub, name="sub", help="A group.")


@app.command(no_args_is_help=True)
def greet(name: str):
    """Greet."""
    print(f"hi {name}")


@sub.command()
def one(number: int = 1):
    """Print a number."""
    print(number)


@sub.command()
def two():
    """Print two."""
    print(2)


if __name__ == "__main__":
    app()
