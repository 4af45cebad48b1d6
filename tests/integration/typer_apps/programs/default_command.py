"""A group with a default command, as packages for default groups make them."""

from typing import Annotated

import typer
from typer.core import TyperGroup


class DefaultGroup(TyperGroup):
    """Runs `show` if the first word is no command."""

    ignore_unknown_options = True

    def parse_args(self, ctx, args):
        """Insert the default command if there are no words."""
        return super().parse_args(ctx, args or ["show"])

    def resolve_command(self, ctx, args):
        """Pass unknown words to the default command."""
        if self.get_command(ctx, args[0]) is None:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=DefaultGroup)


@app.command()
def show(names: Annotated[list[str] | None, typer.Argument()] = None, json: bool = False):
    """Show names."""
    print("show", names, json)


@app.command()
def status():
    """Show the status."""
    print("status")


if __name__ == "__main__":
    app()
