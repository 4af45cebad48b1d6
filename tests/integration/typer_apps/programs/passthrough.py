"""Commands that pass their arguments on."""

from typing import Annotated

import typer

app = typer.Typer()


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(ctx: typer.Context, level: int = 0):
    """Run a program."""
    print("run", level, ctx.args)


@app.command(context_settings={"ignore_unknown_options": True})
def pytest(arguments: Annotated[list[str] | None, typer.Argument()] = None):
    """Run the tests."""
    print("pytest", arguments)


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    }
)
def proxy(ctx: typer.Context):
    """Pass everything on, --help included."""
    print("proxy", ctx.args)


@app.command(context_settings={"allow_extra_args": True})
def extra(ctx: typer.Context, name: str):
    """Take extra arguments."""
    print("extra", name, ctx.args)


@app.command(context_settings={"allow_interspersed_args": False})
def execute(command: list[str]):
    """Stop at the first argument."""
    print("execute", command)


@app.command()
def ordinary(name: str = "x"):
    """Take no extra arguments."""
    print("ordinary", name)


if __name__ == "__main__":
    app()
