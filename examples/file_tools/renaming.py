"""rename: the command with a model. It lives apart, so that only its callers load pydantic."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypedDict

from pydantic import BaseModel, Field

from tooli import (
    Annotated,
    ConflictError,
    InputError,
    NotFoundError,
    Option,
    dry_run_support,
    record_dry_action,
)


class Replace(BaseModel):
    """One text in the name, and what to write in its place."""

    old: str = Field(min_length=1)
    new: str = ""


class Rule(BaseModel):
    """How a new name is made of an old one."""

    match: str = Field(description="Glob for the names to change, such as 'IMG_*.jpg'.")
    prefix: str = Field(default="", description="Written in front of the name.")
    ending: str | None = Field(default=None, description="The new ending, such as '.md'.")
    replace: Replace | None = Field(default=None, description="A text to exchange.")

    def rename(self, path: Path) -> Path:
        """The new path of a file."""
        name = path.stem.replace(self.replace.old, self.replace.new) if self.replace else path.stem
        ending = path.suffix if self.ending is None else self.ending
        try:
            return path.with_name(f"{self.prefix}{name}{ending}")
        except ValueError:  # a slash in it, or nothing at all
            raise InputError("That makes no file name.", field="rule") from None


class Renamed(TypedDict):
    """What a file was called, and what it is called now."""

    old: str
    new: str


@dry_run_support
def rename(
    rule: Annotated[Rule, Option()],
    root: Annotated[Path, Option(exists=True, file_okay=False)] = Path("."),
) -> list[Renamed]:
    """Rename the files of one folder by a rule; nothing is ever overwritten.

    Args:
        rule: The rule: JSON, @file, or part by part, as in --rule.match '*.txt'.
        root: The folder.

    Raises:
        NotFoundError: No file matches the rule.
        ConflictError: A new name is taken; no file was renamed.
    """
    files = sorted(p for p in root.iterdir() if p.is_file() and fnmatchcase(p.name, rule.match))
    if not files:
        raise NotFoundError(
            f"No file in {root.as_posix()} matches {rule.match!r}.",
            code="E3001",
            field="rule.match",
        )
    plan = {old: new for old in files if (new := rule.rename(old)) != old}
    taken = [new.as_posix() for new in plan.values() if new.exists()]
    if taken or len(set(plan.values())) < len(plan):
        raise ConflictError(
            "A new name is taken, or two files would get the same one.",
            field="rule",
            details={"taken": taken},
        )
    for old, new in plan.items():
        if not record_dry_action("rename", old, details={"to": new.name}, state=old):
            old.rename(new)
    return [{"old": old.as_posix(), "new": new.as_posix()} for old, new in plan.items()]
