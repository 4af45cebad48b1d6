"""Attempts of isolated commands on the process that calls them, and on later calls.

Each row names the tests that make an attempt. docs/evasion_table.py runs them and writes the result
to docs/evasions.md. `SUCCEEDS` lists the attempts whose test shows that they succeed.
"""

from __future__ import annotations

from typing import NamedTuple


class CallerAttempt(NamedTuple):
    """What an isolated command does, and the test that does it."""

    about: str
    test: str


_PATHS = "security/test_hostile_paths.py::"
_LINKS = "security/test_planted_links.py::"
_FILES = "security/test_planted_files.py::"
_NAMED = "security/test_caller_files.py::"
_KEYS = "security/test_keys_in_memory.py::"
_DRY_RUN = "security/test_dry_run_questions.py::"
_SET_ID = "security/test_set_id_files.py::"
_KERNEL = "security/test_kernel_interfaces.py::"
_CODEC = "execution/test_safe_codec.py::"
_MESSAGES = "execution/test_untrusted_messages.py::"
_RELAY = "execution/test_output_relay.py::"
_CALLBACKS = "security/test_isolated_callbacks.py::"

CALLER_ATTEMPTS = {
    "files that the caller writes": [
        ("the target of an `Output` becomes a link", f"{_PATHS}TestReplacedTarget::test_link"),
        (
            "the target of an `Output` becomes a link to a file that does not exist",
            f"{_PATHS}TestReplacedTarget::test_dangling_link",
        ),
        ("the target of an `Output` becomes a pipe", f"{_PATHS}TestReplacedTarget::test_pipe"),
        (
            "the folder of the target becomes a link",
            f"{_PATHS}TestReplacedTarget::test_folder_of_the_target_becomes_a_link",
        ),
        (
            "the target is given by a link, which changes",
            f"{_PATHS}TestReplacedTarget::test_target_given_by_a_link_that_changes",
        ),
        (
            "the temporary file of an `Output` is replaced",
            f"{_PATHS}TestReplacedTemporaryFile::test_replaced",
        ),
        (
            "the temporary file gets a second name, and is changed after the call",
            f"{_PATHS}TestReplacedTemporaryFile::test_second_name_does_not_reach_outside",
        ),
        (
            "the temporary file gets the set-user-ID bit",
            f"{_PATHS}TestReplacedTarget::test_special_mode_bits_are_not_kept",
        ),
        ("a link in a folder that a later `Output` names", f"{_LINKS}test_output"),
    ],
    "files that the caller reads": [
        ("a link in the path of a later input", f"{_LINKS}test_input"),
        ("a link in the path of a later secret", f"{_LINKS}test_secret"),
        (
            "a link in the path of a later `@FILE` or `--input @FILE`",
            f"{_NAMED}TestPlantedLinks::test_link_to_a_folder",
        ),
        ("a link in a path that a later command declares", f"{_LINKS}test_declared_path"),
        (
            "a link in a folder of modules, certificates or programs",
            f"{_FILES}test_planted_link_makes_no_file_readable",
        ),
        (
            "a link on the way to a folder of `sys.path`",
            f"{_FILES}test_link_on_the_way_to_sys_path_is_not_followed",
        ),
        (
            "code in a folder that the command may write to",
            f"{_FILES}test_code_in_changeable_folders_is_not_readable",
        ),
        (
            "a sparse file of 1 TB, or a device, for a later `@FILE`",
            f"{_NAMED}test_a_file_without_an_end_is_not_read_to_the_end",
        ),
    ],
    "later calls and other processes": [
        (
            "a link that makes the setup of the sandbox fail",
            f"{_FILES}test_planted_link_does_not_disable_the_sandbox",
        ),
        (
            "1,500 nested folders in a declared folder",
            f"{_FILES}test_deep_folders_do_not_break_other_commands",
        ),
        (
            "nested folders in the temporary folder",
            f"{_PATHS}TestTemporaryFolder::test_deep_folders",
        ),
        (
            "folders without permissions in the temporary folder",
            f"{_PATHS}TestTemporaryFolder::test_folders_without_permissions",
        ),
        (
            "links in the temporary folder, which is removed",
            f"{_PATHS}TestTemporaryFolder::test_links",
        ),
        (
            "the temporary folder becomes a link",
            f"{_PATHS}TestTemporaryFolder::test_replaced_by_a_link",
        ),
        (
            "many files in the temporary folder, which block the event loop",
            "security/test_event_loop.py::test_temporary_files_are_not_removed_on_the_event_loop",
        ),
        ("a process that runs on after the call", f"{_FILES}test_left_process_is_killed"),
        (
            "a new set-user-ID or set-group-ID file",
            f"{_SET_ID}test_file_is_not_created_with_the_bits",
        ),
        ("a set-user-ID file that is changed", f"{_SET_ID}test_changed_file_loses_the_bits"),
        (
            "a set-user-ID file that is changed through a shared mapping",
            f"{_SET_ID}test_file_that_is_changed_through_a_mapping_keeps_the_bits",
        ),
        (
            "settings of the kernel, with `fs:write` without a path",
            f"{_KERNEL}TestWriting::test_kernel_settings",
        ),
        ("devices, with `fs:write` without a path", f"{_KERNEL}TestWriting::test_devices"),
        (
            "a new control group, with `fs:write` without a path",
            f"{_KERNEL}TestWriting::test_new_control_group",
        ),
    ],
    "memory that is copied from the caller": [
        ("the keys that verify tokens", f"{_KEYS}test_key_of_tokens"),
        ("the key of the states of MCP requests", f"{_KEYS}test_key_of_messages"),
        ("the key that signs approvals", f"{_KEYS}test_key_of_approvals"),
        ("the keys of plans, cursors and the audit log", f"{_KEYS}test_keys_in_files"),
        ("the key that several machines share", f"{_KEYS}test_key_of_all_machines"),
        ("the tokens that the server accepts", f"{_KEYS}test_tokens_of_a_server"),
        ("the token of the caller", f"{_KEYS}test_token_of_a_caller"),
        (
            "the values of environment variables",
            "security/test_environment_memory.py::test_variable_is_overwritten",
        ),
    ],
    "messages to the caller": [
        ("a message that is a pickle", f"{_CODEC}test_safe_codec_does_not_load_pickles"),
        ("forged messages of every kind", f"{_CODEC}test_forged_message_has_no_effect"),
        ("invalid messages", f"{_MESSAGES}test_invalid_messages_end_the_call"),
        (
            "a message that is slow to check",
            f"{_CODEC}test_malformed_text_is_refused_in_linear_time",
        ),
        ("a message that needs much memory", f"{_CODEC}test_memory_of_decoded_frames_is_limited"),
        (
            "a set whose members have equal hashes",
            f"{_CODEC}test_members_with_predictable_hashes_are_limited",
        ),
        (
            "reported violations are withdrawn",
            f"{_CODEC}test_reported_violations_cannot_be_withdrawn",
        ),
        ("too many warnings", f"{_CODEC}test_number_of_warnings_is_limited"),
        (
            "control characters and secrets in messages",
            f"{_MESSAGES}test_forged_messages_are_redacted_and_sanitized",
        ),
        (
            "output that nobody reads, to stop the timeout",
            f"{_RELAY}test_reader_that_stops_reading_does_not_stop_the_timeout",
        ),
        (
            "the files at stdout and stdin are changed",
            f"{_RELAY}test_log_file_and_input_file_are_not_changed",
        ),
    ],
    "questions to a human": [
        (
            "the answer to another question becomes an approval",
            f"{_DRY_RUN}test_answer_to_the_function_is_no_approval",
        ),
        (
            "the dry run for an approval asks the client",
            f"{_DRY_RUN}test_dry_run_cannot_reach_the_client",
        ),
        (
            "the dry run for an approval writes a false question to the terminal",
            f"{_DRY_RUN}test_dry_run_cannot_write_to_the_terminal_before_the_question",
        ),
    ],
    "callbacks of Typer": [
        (
            "the callback or the function accesses other files, with Landlock or bubblewrap",
            f"{_CALLBACKS}test_guard_and_function_run_in_the_sandbox",
        ),
        (
            "the effects of a callback are lost in bubblewrap, on the command line",
            f"{_CALLBACKS}test_the_command_line_has_the_guard",
        ),
    ],
}
"""The attempts by what they concern: what the command does, and the test."""

SUCCEEDS = frozenset((f"{_SET_ID}test_file_that_is_changed_through_a_mapping_keeps_the_bits",))


def caller_attempts() -> list[CallerAttempt]:
    """Return all attempts."""
    return [CallerAttempt(*row) for rows in CALLER_ATTEMPTS.values() for row in rows]
