"""A group class with aliases and abbreviations; commands with the names of built-in commands."""

import typer
from typer.core import TyperGroup


class AliasGroup(TyperGroup):
    """Finds commands by alias and by unique prefix."""

    def list_commands(self, ctx):
        """Return the names in reverse order."""
        return sorted(super().list_commands(ctx), reverse=True)

    def get_command(self, ctx, cmd_name):
        """Resolve `rm` and prefixes."""
        cmd_name = {"rm": "remove", "json": "config"}.get(cmd_name, cmd_name)
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            return found
        matches = [name for name in self.commands if name.startswith(cmd_name)]
        return super().get_command(ctx, matches[0]) if len(matches) == 1 else None

    def resolve_command(self, ctx, args):
        """Report the full name of the command."""
        _, command, rest = super().resolve_command(ctx, args)
        return command and command.name, command, rest


app = typer.Typer(cls=AliasGroup, no_args_is_help=True)


@app.command()
def remove(name: str, force: bool = typer.Option(False, "--force", "-f")):
    """Remove something."""
    print(f"removed {name} {force}")


@app.command()
def config(key: str = "all", json: bool = False):
    """Show the settings."""
    print(f"config {key} {json}")


@app.command()
def skills():
    """Show the skills."""
    print("my skills")


@app.command("docs")
def docs_(topic: str = typer.Argument("index")):
    """Show the documents."""
    print(f"docs {topic}")


@app.command()
def mcp(ctx: typer.Context):
    """Show the context."""
    print("mcp", ctx.info_name, ctx.command_path.split()[-1])


if __name__ == "__main__":
    app()
