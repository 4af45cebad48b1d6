"""The stages `work_dir` and `path_rules`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import AuthError, StdinOr
from tooli.core.call import Call
from tooli.stages.path_rules import enforce_path_rules, resolve_work_dir


@dataclass
class Job:
    name: str
    files: list[Path]


def copy(source: Path, targets: list[Path], label: str = "", mode: str = "") -> None: ...


def resolve(call: Call, **settings: Any) -> dict[str, Any]:
    return dict(pass_through(resolve_work_dir(make_context(call, **settings)), call)[0].arguments)


def check(call: Call, **settings: Any) -> dict[str, Any]:
    return dict(pass_through(enforce_path_rules(make_context(call, **settings)), call)[0].arguments)


class TestWorkDir:
    def test_paths_are_unchanged_if_work_dir_is_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert resolve(make_call(copy, {"source": "a"}), work_dir=str(tmp_path)) == {"source": "a"}

    def test_paths_are_unchanged_without_work_dir(self) -> None:
        assert resolve(make_call(copy, {"source": "a"})) == {"source": "a"}

    def test_relative_paths_are_joined_to_the_work_dir(self, tmp_path: Path) -> None:
        folder = tmp_path / "w"
        folder.mkdir()
        arguments = {"source": "a", "targets": ["b", Path("c"), "/d"], "label": "e"}
        assert resolve(make_call(copy, arguments), work_dir=str(folder)) == {
            "source": str(folder / "a"),
            "targets": [str(folder / "b"), folder / "c", "/d"],
            "label": "e",
        }

    @pytest.mark.parametrize("value", ["-", "https://example.org/x"])
    def test_stdin_and_urls_are_not_paths(self, value: str, tmp_path: Path) -> None:
        assert resolve(make_call(copy, {"source": value}), work_dir=str(tmp_path)) == {
            "source": value
        }

    def test_values_that_are_not_paths_are_unchanged(self, tmp_path: Path) -> None:
        assert resolve(make_call(copy, {"source": 7}), work_dir=str(tmp_path)) == {"source": 7}


class TestPathRules:
    def test_path_below_allow_paths_is_allowed(self, tmp_path: Path) -> None:
        call = make_call(copy, {"source": tmp_path / "a", "targets": []})
        assert check(call, allow_paths=((str(tmp_path),),)) == call.arguments

    def test_path_outside_allow_paths_is_denied(self, tmp_path: Path) -> None:
        call = make_call(copy, {"source": Path("/etc/passwd"), "targets": []})
        with pytest.raises(AuthError, match="may not use '/etc/passwd'") as caught:
            check(call, allow_paths=((str(tmp_path),),))
        error = caught.value
        assert (error.code, error.field) == ("E2005", "source")
        assert error.details == {"path": "/etc/passwd", "allowed": [str(tmp_path)]}

    def test_path_below_deny_paths_is_denied(self, tmp_path: Path) -> None:
        call = make_call(copy, {"source": tmp_path / "secret" / "x", "targets": []})
        with pytest.raises(AuthError) as caught:
            check(call, deny_paths=(str(tmp_path / "secret"),))
        assert caught.value.details == {"path": str(tmp_path / "secret" / "x")}

    def test_symbolic_link_out_of_allow_paths_is_denied(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/etc")
        call = make_call(copy, {"source": tmp_path / "link" / "passwd", "targets": []})
        with pytest.raises(AuthError):
            check(call, allow_paths=((str(tmp_path),),))

    def test_nested_paths_are_checked(self, tmp_path: Path) -> None:
        def run(job: Job) -> None: ...

        call = make_call(run, {"job": Job("x", [tmp_path / "a", Path("/etc/passwd")])})
        with pytest.raises(AuthError, match="/etc/passwd"):
            check(call, allow_paths=((str(tmp_path),),))

    def test_value_that_contains_itself_is_checked(self, tmp_path: Path) -> None:
        loop: list[Any] = [tmp_path / "a"]
        loop.append(loop)

        def run(value: list[Any]) -> None: ...

        call = make_call(run, {"value": loop})
        assert check(call, allow_paths=((str(tmp_path),),)) == call.arguments

    @pytest.mark.parametrize(
        ("location", "is_denied"), [("/etc/passwd", True), ("https://example.org/x", False)]
    )
    def test_input_is_denied_by_its_location_unless_it_is_a_url(
        self, location: str, is_denied: bool, tmp_path: Path
    ) -> None:
        class Source:
            tooli_location = location

        def run(source: StdinOr[str]) -> None: ...

        call = make_call(run, {"source": Source()})
        if is_denied:
            with pytest.raises(AuthError):
                check(call, allow_paths=((str(tmp_path),),))
        else:
            assert check(call, allow_paths=((str(tmp_path),),)) == call.arguments

    def test_input_without_a_location_is_allowed(self, tmp_path: Path) -> None:
        class Source:
            tooli_location = None

        def run(source: StdinOr[str]) -> None: ...

        call = make_call(run, {"source": Source()})
        assert check(call, allow_paths=((str(tmp_path),),)) == call.arguments

    def test_defaults_are_joined_to_the_work_dir(self, tmp_path: Path) -> None:
        folder = tmp_path / "w"
        folder.mkdir()
        call = make_call(copy, {"source": Path("a"), "targets": [Path("b")], "label": "c"})
        found = check(call, work_dir=str(folder), allow_paths=((str(folder),),))
        assert found == {"source": folder / "a", "targets": [folder / "b"], "label": "c"}

    def test_path_is_joined_to_the_work_dir_without_rules(self, tmp_path: Path) -> None:
        call = make_call(copy, {"source": Path("a"), "targets": []})
        assert check(call, work_dir=str(tmp_path))["source"] == tmp_path / "a"


class Transfer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    source: Path
    targets: dict[str, Path] = {}
    label: str = "x"


@dataclass(frozen=True)
class Pair:
    first: Path
    jobs: tuple[Transfer, ...] = ()


@dataclass(frozen=True)
class Label:
    text: str


class TestPathsInObjects:
    """The function gets the path that was checked."""

    def run(self, value: Any, tmp_path: Path, **settings: Any) -> Any:
        call = make_call(copy, {"source": value, "targets": []})
        return check(call, work_dir=str(tmp_path), **settings)["source"]

    def test_paths_in_objects_are_joined_to_the_work_dir(self, tmp_path: Path) -> None:
        job = Transfer(source=Path("a"), targets={"k": Path("b"), "l": Path("/abs")})
        found = self.run([Pair(Path("c"), (job, job)), {"p": Path("d"), "t": ["text"]}], tmp_path)
        assert found[0].first == tmp_path / "c"
        for joined in found[0].jobs:
            assert joined.source == tmp_path / "a"
            assert joined.targets == {"k": tmp_path / "b", "l": Path("/abs")}
        assert found[1] == {"p": tmp_path / "d", "t": ["text"]}
        assert job.source == Path("a")  # the caller's object is unchanged

    def test_object_without_paths_is_not_copied(self, tmp_path: Path) -> None:
        label = Label("a")
        assert self.run({"label": label}, tmp_path)["label"] is label

    def test_text_in_lists_is_not_a_path(self, tmp_path: Path) -> None:
        assert self.run(["text", b"bytes"], tmp_path) == ["text", b"bytes"]

    def test_joined_path_is_checked(self, tmp_path: Path) -> None:
        allowed = [[str(tmp_path / "in")]]
        job = Transfer(source=Path("in/x"))
        assert self.run(job, tmp_path, allow_paths=allowed).source == tmp_path / "in" / "x"
        for path in ("out", "in/../out", "../x"):
            with pytest.raises(AuthError, match="may not use"):
                self.run(Transfer(source=Path(path)), tmp_path, allow_paths=allowed)

    def test_relative_path_that_cannot_be_joined_is_denied(self, tmp_path: Path) -> None:
        loop: list[Any] = [Path("in/x")]
        loop.append(loop)
        with pytest.raises(AuthError, match="relative path"):
            self.run(loop, tmp_path, allow_paths=[[str(tmp_path)]])

    def test_home_is_checked_expanded_and_as_it_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        call = make_call(copy, {"source": Path("~/x"), "targets": []})
        check(call, allow_paths=[[str(tmp_path)]])
        for allowed in (tmp_path / "home", tmp_path / "~"):
            with pytest.raises(AuthError):
                check(call, allow_paths=[[str(allowed)]])
