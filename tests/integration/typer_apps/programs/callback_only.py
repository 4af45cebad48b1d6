"""An app that is one callback with arguments."""

import typer

app = typer.Typer(add_completion=False)


def show_version(value: bool):
    """Print the version and exit."""
    if value:
        typer.echo("callback-only 1.2.3")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    path: str = typer.Argument("."),
    json: bool = False,
    limit: int = 10,
    version: bool | None = typer.Option(
        None, "--version", "-V", callback=show_version, is_eager=True
    ),
):
    """List a folder."""
    print(f"list {path} {json} {limit}")


if __name__ == "__main__":
    app()
