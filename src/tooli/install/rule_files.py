"""Write the permission rules of an app into the files of a coding agent, and remove them again.

A file is either the app's own, such as `.codex/rules/shop.rules`, or a settings file of the agent
that a person and `mcp add` change as well. In a settings file, rules are added beside what it
contains. A rule of a person wins: a value that is already set is not changed. The inserted text is
recorded in `installed.json`, so that removing the rules restores the original bytes.
"""

from __future__ import annotations

import os

from tooli.core import Record
from tooli.core.agent_hosts import AGENT_HOSTS
from tooli.describe.front_matter import skill_slug
from tooli.export.permissions import is_settings_file, render_rules
from tooli.install.file_changes import (
    FileChange,
    InstallStep,
    digest,
    is_same_text,
    parent_folders,
    plan_and_apply,
    read_file,
    resolve_path,
    single_change,
)
from tooli.install.jsonc import MalformedFileError
from tooli.install.project_documents import containing_root
from tooli.install.rule_formats import JsonRules, TomlRules, missing_values, prune, subtract
from tooli.install.server_registration import (
    ServerRecords,
    errors_name_file,
    missing_folders,
    server_digest,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject
    from tooli.describe.sections import AppInfo
    from tooli.install.rule_formats import RuleFormat


class RulePlan(Record):
    """An install step, and the records to store when it is applied."""

    step: InstallStep
    file: str
    record: JsonObject | None  # of the rules


def write_rules(
    app_info: AppInfo,
    host: str,
    folder: str,
    remove: bool = False,
    *,
    force: bool,
    dry_run: bool,
) -> list[dict[str, str]]:
    """Write the rules of an app below a folder, or remove them; return result rows."""
    server, files = skill_slug(app_info.name), render_rules(app_info, host)
    root = containing_root(folder)
    plans, records = list[RulePlan](), ServerRecords()

    def plan() -> list[InstallStep]:
        nonlocal records
        records = ServerRecords()  # read while the lock is held
        writer = _RuleWriter(host, server, root, records, remove=remove)
        plans[:] = [
            writer.plan(os.path.join(folder, *path.split("/")), path, text)
            for path, text in files.items()
        ]
        return [one.step for one in plans]

    def save_records() -> None:
        for one in plans:
            records.set_rules(one.file, server, one.record)
        records.save()

    return plan_and_apply(plan, force=force, dry_run=dry_run, on_applied=save_records)


class _RuleWriter:
    """Plans the changes of rule files."""

    def __init__(
        self, host: str, server: str, root: str, records: ServerRecords, *, remove: bool
    ) -> None:
        self.host, self.server, self.root = host, server, root
        self.records, self.remove = records, remove

    def plan(self, path: str, name: str, text: str) -> RulePlan:
        """Plan the change of one file."""
        file = resolve_path(path, self.root)
        before = read_file(file)
        known = self.records.get_rules(file, self.server)
        if not is_settings_file(name):
            return self._plan_own_file(path, file, before, text.encode(), known)
        rule_format = TomlRules() if name.endswith(".toml") else JsonRules()
        with errors_name_file(path):
            return self._plan_settings(path, file, before, text, known, rule_format)

    def _plan_own_file(
        self, path: str, file: str, before: bytes | None, wanted: bytes, known: JsonObject
    ) -> RulePlan:
        if before is None:
            state = "absent"
        elif is_same_text(before, wanted):
            state = "current"
        else:
            state = "stale" if digest(before) == known.get("digest") else "edited"
        after = None if self.remove else wanted
        if before is None and self.remove:
            return RulePlan(InstallStep(path, self.host, state, state), file, None)
        record = self._record(file, before, known, digest=digest(wanted))
        if state == "current" and not self.remove:
            return RulePlan(InstallStep(path, self.host, state, state), file, record)
        action = "removed" if self.remove else "created" if before is None else "updated"
        prune_folders = self._created_folders(file, known) if self.remove else []
        change = FileChange(file, before, after)
        step = single_change(path, self.host, state, action, change, prune_folders)
        return RulePlan(step, file, None if self.remove else record)

    def _plan_settings(
        self,
        path: str,
        file: str,
        before: bytes | None,
        text: str,
        known: JsonObject,
        rule_format: RuleFormat,
    ) -> RulePlan:
        try:
            present = (before or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedFileError(1, "it is not UTF-8") from None
        content, wanted = rule_format.load(present), rule_format.load(text)
        wanted, entry_digest = self._without_server(content, wanted, file, known)
        obsolete = subtract(_added(known), {} if self.remove else wanted)
        missing: JsonObject = {} if self.remove else missing_values(content, wanted)
        if not missing and not (obsolete and subtract(content, obsolete) != content):
            state = "absent" if self.remove else "current"
            step = InstallStep(path, self.host, state, state)
            return RulePlan(step, file, None if self.remove else known or None)
        after = _remove_rules(present, known, rule_format)
        texts: list[str] = []
        if not self.remove:
            missing = missing_values(rule_format.load(after), wanted)
            after, texts = rule_format.insert(after, missing)
        record = self._record(file, before, known, texts=texts, added=missing, server=entry_digest)
        is_deleted = self.remove and known.get("file") is True and rule_format.is_empty(after)
        if self.remove:
            state, action = "current", "removed"
        else:
            state = "stale" if known else "absent"
            action = "created" if before is None else "updated"
        folders = self._created_folders(file, known) if is_deleted else []
        change = FileChange(file, before, None if is_deleted else after.encode("utf-8"))
        step = single_change(path, self.host, state, action, change, folders)
        return RulePlan(step, file, None if self.remove else record)

    def _without_server(
        self, content: JsonObject, wanted: JsonObject, file: str, known: JsonObject
    ) -> tuple[JsonObject, str]:
        """Return the rules without the entry of the server, if that is registered already.

        Codex accepts no rules without a server. If none is registered, the rules include its entry,
        and the digest of the entry is returned as well. `mcp add` may take it over later.
        """
        settings = AGENT_HOSTS[self.host].servers
        if settings is None or settings.container not in wanted:
            return wanted, ""
        name = settings.container
        entry: JsonObject = wanted[name][self.server]
        found = content.get(name)
        registered: object = found.get(self.server) if is_object(found) else None
        found_digest = server_digest(self.host, registered)
        is_ours = (
            known.get("server") == found_digest and self.records.get(file, self.server) is None
        )
        if registered is None or is_ours:
            return wanted, server_digest(self.host, entry)
        if known.get("server"):  # `mcp add` has taken the entry over
            added = _added(known).get(name, {}).get(self.server, {})
            for key in [key for key in added if key not in settings.rule_keys]:
                del added[key]
        return {
            name: {self.server: {key: entry[key] for key in settings.rule_keys if key in entry}}
        }, ""

    def _record(
        self, file: str, before: bytes | None, known: JsonObject, **more: object
    ) -> JsonObject:
        if before is None:
            return {**more, "file": True, "folders": missing_folders(file)}
        created = {key: known[key] for key in ("file", "folders") if key in known}
        return {**created, **more}

    def _created_folders(self, file: str, known: JsonObject) -> list[str]:
        folders = known.get("folders")
        return parent_folders(file, folders if isinstance(folders, int) else 0)


def _added(known: JsonObject) -> JsonObject:
    added = known.get("added")
    return added if is_object(added) else {}


def _remove_rules(text: str, known: Mapping[str, object], rule_format: RuleFormat) -> str:
    """Return the text without the rules that we added.

    If the inserted text is unchanged, exactly that text is removed.
    """
    added, texts = _added(dict(known)), known.get("texts")
    expected = prune(subtract(rule_format.load(text), added))
    after = text
    for part in reversed(texts if is_list(texts) else []):
        if isinstance(part, str) and part and after.count(part) == 1:
            after = after.replace(part, "", 1)
    try:
        if prune(rule_format.load(after)) == expected:
            return after
    except MalformedFileError:
        pass  # since a later edit, the rest needs a comma or bracket of the inserted text
    return rule_format.remove(text, added)
