"""Some commands declare a result, others print."""

import typer

app = typer.Typer()


def show_version(value: bool):
    """Print the version and exit."""
    if value:
        typer.echo("mixed 3.0")
        raise typer.Exit


@app.callback()
def main(version: bool = typer.Option(False, callback=show_version, is_eager=True)):
    """Measure texts."""


@app.command()
def size(text: str) -> int:
    """Count the characters."""
    return len(text)


@app.command()
def show(text: str) -> None:
    """Print the text."""
    print(text)


if __name__ == "__main__":
    app()
