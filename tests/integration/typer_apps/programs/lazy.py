"""A group whose commands are made when they are named."""

import typer
from typer import Typer as PlainTyper
from typer.core import TyperGroup


def build(name):
    """Return a command, from an app of either class."""
    single = PlainTyper() if name == "alpha" else typer.Typer()

    @single.command(name)
    def run(value: int = 1, json: bool = False):
        """Run a lazy command."""
        print(f"{name} {value} {json}")

    return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    """Has commands that are not registered."""

    lazy = ("alpha", "beta", "export")

    def list_commands(self, ctx):
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *self.lazy]

    def get_command(self, ctx, cmd_name):
        """Make a command."""
        if cmd_name in self.lazy:
            return build(cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(help="A lazy app.")


@app.callback(cls=LazyGroup)
def main(verbose: bool = typer.Option(False, "--verbose", "-v")):
    """Run lazy commands."""
    if verbose:
        print("verbose")


if __name__ == "__main__":
    app()
