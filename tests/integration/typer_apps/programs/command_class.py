"""A command class that reads an option of its own."""

import typer
from typer.core import TyperCommand


class JsonCommand(TyperCommand):
    """Has the option --json."""

    def parse_args(self, ctx, args):
        """Take the option, which is no parameter."""
        ctx.meta["json"] = "--json" in args
        return super().parse_args(ctx, [arg for arg in args if arg != "--json"])


app = typer.Typer()


@app.command(cls=JsonCommand)
def run(ctx: typer.Context, name: str):
    """Run it."""
    print("run", name, ctx.meta.get("json"))


@app.command()
def plain(json: bool = False):
    """Print a flag."""
    print("plain", json)


if __name__ == "__main__":
    app()
