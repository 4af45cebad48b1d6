"""One command that passes its arguments on."""

import typer

app = typer.Typer(add_completion=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def main(ctx: typer.Context, program: str):
    """Run a program."""
    print(program, ctx.args)


if __name__ == "__main__":
    app()
