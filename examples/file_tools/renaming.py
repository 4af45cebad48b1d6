"""The rename command. It has its own module so that only its callers load pydantic."""

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
    """A text in the name, and its replacement."""

    old: str = Field(min_length=1)
    new: str = ""


class Rule(BaseModel):
    """How to make the new name from the old one."""

    match: str = Field(description="Glob for the names to change, such as 'IMG_*.jpg'.")
    prefix: str = Field(default="", description="Text to put before the name.")
    ending: str | None = Field(default=None, description="The new ending, such as '.md'.")
    replace: Replace | None = Field(default=None, description="A text to replace.")

    def rename(self, path: Path) -> Path:
        """Return the new path of a file."""
        name = path.stem.replace(self.replace.old, self.replace.new) if self.replace else path.stem
        ending = path.suffix if self.ending is None else self.ending
        try:
            return path.with_name(f"{self.prefix}{name}{ending}")
        except ValueError:  # it contains a slash, or is empty
            raise InputError("The rule does not produce a valid file name.", field="rule") from None


class Renamed(TypedDict):
    """The old and the new path of a file."""

    old: str
    new: str


@dry_run_support
def rename(
    rule: Annotated[Rule, Option()],
    root: Annotated[Path, Option(exists=True, file_okay=False)] = Path("."),
) -> list[Renamed]:
    """Rename the files of one folder by a rule. No file is overwritten.

    Args:
        rule: JSON, @file, or one flag for each field, as in --rule.match '*.txt'.
        root: Folder with the files.

    Raises:
        NotFoundError: No file matches the rule.
        ConflictError: A new name is taken. No file was renamed.
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
            "A file with a new name exists already, or two files would get the same name.",
            field="rule",
            details={"taken": taken},
        )
    for old, new in plan.items():
        if not record_dry_action("rename", old, details={"to": new.name}, state=old):
            old.rename(new)
    return [{"old": old.as_posix(), "new": new.as_posix()} for old, new in plan.items()]
