"""A lazy counterpart of the `typer` module: `from tooli import typer` instead of `import typer`.

It has the same names. `Typer` is Tooli, `Option` and `Argument` are tooli's own, and `echo` writes
plain text directly. Every other name loads the real Typer when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typer import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
    from typer import Argument as Argument
    from typer import Option as Option
    from typer import echo as echo

    from tooli.app import Tooli as Typer
else:
    from tooli.app import Tooli as Typer
    from tooli.schema.param_info import Argument, Option

    def echo(message=None, file=None, nl=True, err=False, color=None):
        """Write a message and a newline. Colours and other types are left to Typer's `echo`."""
        import sys

        out = file or (sys.stderr if err else sys.stdout)
        if color is not None or not isinstance(message, str) or "\x1b" in message:
            import typer

            typer.echo(message, file=file, nl=nl, err=err, color=color)
            return
        out.write(message + "\n" if nl else message)
        out.flush()

    def __getattr__(name):
        import typer

        return getattr(typer, name)

    def __dir__():
        import typer

        return sorted({*dir(typer), "Argument", "Option", "Typer", "echo"})


__all__ = ["Argument", "Option", "Typer", "echo"]
