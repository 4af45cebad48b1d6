"""Which parameters take files, and the values that stand for files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
import typer

from tooli import Output, StdinOr, Tooli, Within
from tooli.annotations import ReadOnly
from tooli.inputs.uploads import (
    Upload,
    UploadedInput,
    UploadedPath,
    clean_file_name,
    find_upload_paths,
    safe_suffix,
    to_argument,
    upload_parameters,
)

EXISTS = typer.Option(exists=True)


def make_tool(annotation: Any, **options: Any) -> Any:
    app = Tooli("app")

    def fn(value: Any) -> int:
        return 1

    fn.__annotations__ = {"value": annotation, "return": int}
    app.command("fn", **options)(fn)
    return app.find("fn")


@pytest.mark.parametrize(
    ("annotation", "capabilities", "is_accepted"),
    [
        (bytes, [], True),
        (list[bytes], [], True),
        (bytes | None, [], True),
        (StdinOr[str], [], True),
        (StdinOr[Path], [], True),
        (Annotated[Path, EXISTS], [], True),
        (Annotated[list[Path], EXISTS], [], True),
        (Path, ["fs:read"], True),
        (Path, ["fs:read:./data", "net:read"], True),
        (Path, [], False),
        (Path, ["fs:read", "fs:write:./out"], False),
        (Annotated[Path, typer.Option(exists=True, file_okay=False)], [], False),
        (Annotated[Path, typer.Option(exists=True, writable=True)], [], False),
        (Annotated[Path, EXISTS, Within("data")], [], False),
        (Annotated[StdinOr[str], Within("data")], [], False),
        (Annotated[bytes, typer.Option(parser=str.encode)], [], False),
        (Annotated[Path, pydantic.AfterValidator(lambda path: path)], ["fs:read"], False),
        (Output, [], False),
        (str, ["fs:read"], False),
        (dict[str, bytes], [], False),
    ],
)
def test_parameters_that_take_files(
    annotation: Any, capabilities: list[str], is_accepted: bool
) -> None:
    tool = make_tool(annotation, capabilities=capabilities or None)
    assert bool(upload_parameters(tool)) == is_accepted


def test_path_of_a_command_that_only_reads_is_read() -> None:
    assert upload_parameters(make_tool(Path, annotations=ReadOnly))
    assert not upload_parameters(make_tool(Output, annotations=ReadOnly))


def test_name_and_suffix() -> None:
    assert clean_file_name("a/b\\c.txt") == "c.txt"
    assert clean_file_name("\u202egpj.exe\n") == "gpj.exe"
    assert clean_file_name("") == clean_file_name("...") == clean_file_name("a/") == "upload"
    assert safe_suffix("a.b.tar.gz") == ".tar.gz"
    assert safe_suffix("a.t x") == safe_suffix("a") == safe_suffix("a." + "x" * 11) == ""


def test_values_survive_another_process(tmp_path: Path) -> None:
    path = tmp_path / "1.txt"
    path.write_text("text")
    upload = Upload(str(path), "a.txt", "d1")
    tool = make_tool(StdinOr[Path])
    given = to_argument(tool.params[0], upload)
    assert isinstance(given, UploadedInput)
    copied = pickle.loads(pickle.dumps(given))
    assert (copied.read_text(), copied.source, copied.is_stdin) == ("text", "a.txt", False)
    assert (copied.tooli_digest, copied.tooli_location, copied.tooli_cli_text) == ("d1", None, None)
    file = to_argument(make_tool(Annotated[Path, EXISTS]).params[0], upload)
    assert isinstance(file, UploadedPath)
    assert pickle.loads(pickle.dumps(file)).read_text() == "text"
    assert (file.tooli_json, file.parent.tooli_json) == ("a.txt", str(tmp_path))
    assert to_argument(make_tool(bytes).params[0], upload) == b"text"
    assert find_upload_paths({"a": [given], "b": file, "c": "x"}) == (str(path), str(path))
