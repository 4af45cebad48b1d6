"""A callback with a positional argument before the command."""

import typer

app = typer.Typer()


@app.callback()
def main(project: str, dry_run: bool = typer.Option(False, "--dry-run", "-n")):
    """Work on a project."""
    print(f"project {project} {dry_run}")


@app.command()
def build(target: str = "all"):
    """Build it."""
    print(f"build {target}")


@app.command()
def test(names: list[str]):
    """Test it."""
    print("test", *names)


if __name__ == "__main__":
    app()
