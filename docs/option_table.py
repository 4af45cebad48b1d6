"""The table of framework options in README.md, from `tooli.core.options`."""

from __future__ import annotations

from tooli.core.options import OPTIONS, Option

BEGIN = "<!-- options: generated from src/tooli/core/options.py by `make docs`; do not edit -->"
END = "<!-- end of options -->"
_INTERFACES = {"http": "HTTP", "mcp": "MCP", "python": "Python"}


def with_option_table(page: str) -> str:
    """Return a page with the current table between the markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{option_table()}\n\n{END}{after}"


def option_table() -> str:
    """Return the table: flags, effect, and the other interfaces that accept the option."""
    head = "| flag | effect | also accepted by |\n| --- | --- | --- |\n"
    return head + "\n".join([_row(option) for option in OPTIONS if option.flags])


def _row(option: Option) -> str:
    value = f" {option.value_name}" if option.value_name else ""
    spellings = [f"`{flag}{value}`" for flag in option.flags]
    spellings += [f"`{flag}`" for flag, _ in option.shortcuts]
    link = f" ([docs/{option.page}](docs/{option.page}))" if option.page else ""
    interfaces = [_INTERFACES[name] for name in option.interfaces if name in _INTERFACES]
    flags = ", ".join(spellings).replace("|", "\\|")
    return (
        f"| {flags} | {option.help.replace('|', chr(92) + '|')}{link} | {', '.join(interfaces)} |"
    )
