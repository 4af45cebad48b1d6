"""The help desk as each library has it written.

The commands, their parameters, words and results are the same for everybody. A peer gets every
advantage that its documentation knows: FastMCP describes parameters and says what is read-only,
incur says what is destructive and describes results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.desk import ABOUT, COMMANDS, PROGRAM, Command, Parameter

# ------------------------------------------------------------------ Python


def python_type(kind: str, choices: tuple[str, ...] = ()) -> str:
    """A type as Python has it."""
    if kind == "choice":
        return f"Literal[{', '.join(map(repr, choices))}]"
    return "list[str]" if kind == "list" else kind


def default_in_python(parameter: Parameter) -> str:
    """The default behind a parameter; nothing where it is required."""
    if parameter.required:
        return ""
    value = parameter.default
    return f" = {'[]' if value == () else repr(value)}"


def results() -> Iterator[str]:
    """A TypedDict for what each command gives."""
    for command in COMMANDS:
        fields = "\n".join(
            f"    {name}: {python_type(kind)}" for name, kind in command.result.items()
        )
        yield f"\n\nclass {class_name(command)}(TypedDict):\n{fields}"


def class_name(command: Command) -> str:
    """The name of its result's type."""
    return "".join(word.title() for word in command.name.split("-")) + "Result"


def returns(command: Command) -> str:
    """Its result's annotation."""
    return f"list[{class_name(command)}]" if command.many else class_name(command)


HEAD = "from typing import Annotated, Literal\n\nfrom typing_extensions import TypedDict\n"
BODY = "    raise NotImplementedError\n"


def tooli_app(tail: str) -> str:
    """As tooli has it written, this one and the older one."""
    parts = [
        HEAD,
        "from tooli import Argument, Option, Tooli",
        "from tooli.annotations import Destructive, ReadOnly\n",
        f"\napp = Tooli(name={PROGRAM!r}, description={ABOUT!r}, version='1.0.0')",
        *results(),
    ]
    for command in COMMANDS:
        options = "ReadOnly" if command.reads else "Destructive" if command.destroys else ""
        given = ", ".join(
            f"{p.name}: Annotated[{python_type(p.kind, p.choices)}, "
            f"{'Argument' if p.required else 'Option'}(help={p.about!r})]{default_in_python(p)}"
            for p in command.parameters
        )
        parts.append(
            f"\n\n@app.command({f'annotations={options}' if options else ''})\n"
            f"def {command.function}({given}) -> {returns(command)}:\n"
            f'    """{command.about}"""\n{BODY}'
        )
    return "\n".join(parts) + tail


def fastmcp_app() -> str:
    """As FastMCP has it written."""
    parts = [
        HEAD,
        "from fastmcp import FastMCP\nfrom pydantic import Field\n",
        f"\napp = FastMCP({PROGRAM!r}, instructions={ABOUT!r}, version='1.0.0')",
        *results(),
    ]
    for command in COMMANDS:
        hint = "readOnlyHint" if command.reads else "destructiveHint" if command.destroys else ""
        options = f"(annotations={{{hint!r}: True}})" if hint else ""
        given = ", ".join(
            f"{p.name}: Annotated[{python_type(p.kind, p.choices)}, Field(description={p.about!r})]"
            f"{default_in_python(p)}"
            for p in command.parameters
        )
        parts.append(
            f"\n\n@app.tool{options}\ndef {command.function}({given}) -> {returns(command)}:\n"
            f'    """{command.about}"""\n{BODY}'
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


def zod(kind: str, choices: tuple[str, ...] = ()) -> str:
    """A type as zod has it."""
    return f"z.enum({json.dumps(choices)})" if kind == "choice" else ZOD[kind]


def described(parameter: Parameter) -> str:
    """A parameter as zod has it."""
    schema = zod(parameter.kind, parameter.choices)
    if not parameter.required:
        schema += f".default({json.dumps(parameter.default)})"
    return f"{parameter.name}: {schema}.describe({json.dumps(parameter.about)})"


def incur_app() -> str:
    """As incur has it written."""
    head = {"description": ABOUT, "version": "1.0.0"}
    parts = [f"import {{ Cli, z }} from 'incur'\nCli.create('{PROGRAM}', {json.dumps(head)})"]
    for command in COMMANDS:
        args = [described(p) for p in command.parameters if p.required]
        options = [described(p) for p in command.parameters if not p.required]
        fields = ", ".join(f"{name}: {zod(kind)}" for name, kind in command.result.items())
        result = f"z.object({{ {fields} }})"
        hints = {"readOnlyHint": True} if command.reads else {"destructiveHint": command.destroys}
        parts.append(
            f"  .command('{command.name}', {{ description: {json.dumps(command.about)},\n"
            + (f"    args: z.object({{ {', '.join(args)} }}),\n" if args else "")
            + (f"    options: z.object({{ {', '.join(options)} }}),\n" if options else "")
            + f"    output: {f'z.array({result})' if command.many else result},\n"
            + f"    destructive: {json.dumps(command.destroys)},\n"
            + f"    mcp: {{ annotations: {json.dumps(hints)} }},\n"
            + "    run() { throw new Error('not implemented') } })"
        )
    return "\n".join([*parts, "  .serve()\n"])


# ------------------------------------------------------------------ all of them

PLAIN_TAIL = "\n\ndef main() -> None:\n    app()\n"
# The older tooli has no flags for these: this is the shortest way that it offers.
OLD_TAIL = """

def main() -> None:
    import sys

    from tooli.docs.skill_v4 import generate_skill_md
    from tooli.manifest import manifest_as_json

    print({"manifest": manifest_as_json, "skill": generate_skill_md}[sys.argv[1]](app))
"""
INCUR_TAIL = "\n\ndef main() -> None:\n    start(SOURCE)\n"


def desks() -> Iterator[tuple[str, str]]:
    """Every app: module name and source."""
    yield "desk_tooli", tooli_app(PLAIN_TAIL)
    yield "desk_old", tooli_app(OLD_TAIL)
    yield "desk_fastmcp", fastmcp_app()
    yield "desk_incur", f"from incur_room import start\n\nSOURCE = {incur_app()!r}\n{INCUR_TAIL}"
