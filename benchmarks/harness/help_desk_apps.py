"""Generate the help desk app for each library.

The commands, their parameters, descriptions and results are the same for all libraries. The apps
use all features that the libraries document for this purpose: descriptions of parameters and
read-only hints in FastMCP, destructive hints and output schemas in incur.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.help_desk import COMMANDS, DESCRIPTION, PROGRAM, Command, Parameter

# ------------------------------------------------------------------ Python


def python_type(kind: str, choices: tuple[str, ...] = ()) -> str:
    """Return the Python annotation of a type."""
    if kind == "choice":
        return f"Literal[{', '.join(map(repr, choices))}]"
    return "list[str]" if kind == "list" else kind


def python_default(parameter: Parameter) -> str:
    """Return the default of a parameter as Python source; empty if it is required."""
    if parameter.required:
        return ""
    value = parameter.default
    return f" = {'[]' if value == () else repr(value)}"


def result_types() -> Iterator[str]:
    """Yield a TypedDict for the result of each command."""
    for command in COMMANDS:
        fields = "\n".join(
            f"    {name}: {python_type(kind)}" for name, kind in command.result.items()
        )
        yield f"\n\nclass {class_name(command)}(TypedDict):\n{fields}"


def class_name(command: Command) -> str:
    """Return the name of the result type of a command."""
    return "".join(word.title() for word in command.name.split("-")) + "Result"


def return_type(command: Command) -> str:
    """Return the return annotation of a command."""
    return f"list[{class_name(command)}]" if command.is_list else class_name(command)


HEAD = "from typing import Annotated, Literal\n\nfrom typing_extensions import TypedDict\n"
BODY = "    raise NotImplementedError\n"


def tooli_app(tail: str) -> str:
    """Return the app for tooli, the current and the older one."""
    parts = [
        HEAD,
        "from tooli import Argument, Option, Tooli",
        "from tooli.annotations import Destructive, ReadOnly\n",
        f"\napp = Tooli(name={PROGRAM!r}, description={DESCRIPTION!r}, version='1.0.0')",
        *result_types(),
    ]
    for command in COMMANDS:
        options = "ReadOnly" if command.read_only else "Destructive" if command.destructive else ""
        parameters = ", ".join(
            f"{p.name}: Annotated[{python_type(p.kind, p.choices)}, "
            f"{'Argument' if p.required else 'Option'}(help={p.description!r})]{python_default(p)}"
            for p in command.parameters
        )
        parts.append(
            f"\n\n@app.command({f'annotations={options}' if options else ''})\n"
            f"def {command.function}({parameters}) -> {return_type(command)}:\n"
            f'    """{command.description}"""\n{BODY}'
        )
    return "\n".join(parts) + tail


def fastmcp_app() -> str:
    """Return the app for FastMCP."""
    parts = [
        HEAD,
        "from fastmcp import FastMCP\nfrom pydantic import Field\n",
        f"\napp = FastMCP({PROGRAM!r}, instructions={DESCRIPTION!r}, version='1.0.0')",
        *result_types(),
    ]
    for command in COMMANDS:
        hint = (
            "readOnlyHint"
            if command.read_only
            else "destructiveHint"
            if command.destructive
            else ""
        )
        options = f"(annotations={{{hint!r}: True}})" if hint else ""
        parameters = ", ".join(
            f"{p.name}: Annotated[{python_type(p.kind, p.choices)}, "
            f"Field(description={p.description!r})]{python_default(p)}"
            for p in command.parameters
        )
        parts.append(
            f"\n\n@app.tool{options}\n"
            f"def {command.function}({parameters}) -> {return_type(command)}:\n"
            f'    """{command.description}"""\n{BODY}'
        )
    return (
        "\n".join(parts)
        + "\n\ndef main() -> None:\n    app.run(show_banner=False, log_level='ERROR')\n"
    )


# ------------------------------------------------------------------ JavaScript

ZOD = {
    "str": "z.string()",
    "int": "z.number()",
    "float": "z.number()",
    "bool": "z.boolean()",
    "list": "z.array(z.string())",
}


def zod_type(kind: str, choices: tuple[str, ...] = ()) -> str:
    """Return the zod schema of a type."""
    return f"z.enum({json.dumps(choices)})" if kind == "choice" else ZOD[kind]


def zod_parameter(parameter: Parameter) -> str:
    """Return a parameter with its zod schema."""
    schema = zod_type(parameter.kind, parameter.choices)
    if not parameter.required:
        schema += f".default({json.dumps(parameter.default)})"
    return f"{parameter.name}: {schema}.describe({json.dumps(parameter.description)})"


def incur_app() -> str:
    """Return the app for incur."""
    head = {"description": DESCRIPTION, "version": "1.0.0"}
    parts = [f"import {{ Cli, z }} from 'incur'\nCli.create('{PROGRAM}', {json.dumps(head)})"]
    for command in COMMANDS:
        args = [zod_parameter(p) for p in command.parameters if p.required]
        options = [zod_parameter(p) for p in command.parameters if not p.required]
        fields = ", ".join(f"{name}: {zod_type(kind)}" for name, kind in command.result.items())
        result = f"z.object({{ {fields} }})"
        hints = (
            {"readOnlyHint": True}
            if command.read_only
            else {"destructiveHint": command.destructive}
        )
        parts.append(
            f"  .command('{command.name}', {{ description: {json.dumps(command.description)},\n"
            + (f"    args: z.object({{ {', '.join(args)} }}),\n" if args else "")
            + (f"    options: z.object({{ {', '.join(options)} }}),\n" if options else "")
            + f"    output: {f'z.array({result})' if command.is_list else result},\n"
            + f"    destructive: {json.dumps(command.destructive)},\n"
            + f"    mcp: {{ annotations: {json.dumps(hints)} }},\n"
            + "    run() { throw new Error('not implemented') } })"
        )
    return "\n".join([*parts, "  .serve()\n"])


# ------------------------------------------------------------------ all apps

PLAIN_TAIL = "\n\ndef main() -> None:\n    app()\n"
# The older tooli has no flags for these documents. These functions generate them.
OLD_TAIL = """

def main() -> None:
    import sys

    from tooli.docs.skill_v4 import generate_skill_md
    from tooli.manifest import manifest_as_json

    print({"manifest": manifest_as_json, "skill": generate_skill_md}[sys.argv[1]](app))
"""
INCUR_TAIL = "\n\ndef main() -> None:\n    start(SOURCE)\n"


def help_desk_apps() -> Iterator[tuple[str, str]]:
    """Yield each app: module name and source."""
    yield "desk_tooli", tooli_app(PLAIN_TAIL)
    yield "desk_old", tooli_app(OLD_TAIL)
    yield "desk_fastmcp", fastmcp_app()
    yield (
        "desk_incur",
        f"from incur_launcher import start\n\nSOURCE = {incur_app()!r}\n{INCUR_TAIL}",
    )
