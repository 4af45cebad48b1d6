"""A callback with options that runs before the commands, and without one."""

import typer

app = typer.Typer()
items = typer.Typer(no_args_is_help=True, help="Work with items.")
app.add_typer(items, name="items")


def show_version(value: bool):
    """Print the version and exit."""
    if value:
        typer.echo("guarded 2.0")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    ctx: typer.Context,
    user: str = typer.Option("nobody", envvar="GUARDED_USER"),
    verbose: int = typer.Option(0, "--verbose", "-v", count=True),
    version: bool | None = typer.Option(None, "--version", callback=show_version, is_eager=True),
):
    """Guard the commands."""
    ctx.obj = {"user": user, "verbose": verbose}
    if user == "root":
        typer.echo("root is not allowed", err=True)
        raise typer.Exit(3)
    if ctx.invoked_subcommand is None:
        print("no command")
    elif verbose:
        print("running", ctx.invoked_subcommand)


@app.command()
def show(ctx: typer.Context, quiet: bool = typer.Option(False, "--quiet", "-q")):
    """Show the user."""
    print(ctx.obj, quiet)


@items.command("add")
def add(ctx: typer.Context, name: str):
    """Add an item."""
    print("add", name, ctx.obj["user"])


@items.command("export")
def export_items():
    """Export the items."""
    print("export")


if __name__ == "__main__":
    app()
