"""One command."""

import typer

app = typer.Typer()


@app.command()
def main(name: str, formal: bool = False, lines: int = typer.Option(1, "--lines", "-l")):
    """Greet someone.

    Examples:
        single Ada
    """
    for _ in range(lines):
        print(f"{'Good day' if formal else 'Hi'} {name}")


if __name__ == "__main__":
    app()
