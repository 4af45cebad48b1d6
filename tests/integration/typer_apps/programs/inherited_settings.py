"""One command that inherits the context settings of its app."""

import typer

app = typer.Typer(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "allow_extra_args": True,
        "ignore_unknown_options": True,
    }
)


@app.command()
def main(ctx: typer.Context, name: str):
    """Greet."""
    print("hi", name, ctx.args)


if __name__ == "__main__":
    app()
