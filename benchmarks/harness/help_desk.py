"""A help desk with twenty commands, as data. `help_desk_apps` generates an app for each library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PROGRAM, DESCRIPTION = "desk", "A help desk: tickets, articles and the people who answer."
REQUIRED: Any = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter; `kind` is str, int, float, bool, list (of strings) or choice."""

    name: str
    kind: str
    description: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """True if the parameter has no default."""
        return self.default is REQUIRED


@dataclass(frozen=True)
class Command:
    """A command; `result` has the types of its fields. With `is_list`, the result is a list."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    result: dict[str, str]
    is_list: bool = False
    read_only: bool = False
    destructive: bool = False

    @property
    def function(self) -> str:
        """The name of the function in Python."""
        return self.name.replace("-", "_")


TICKET = Parameter("ticket", "int", "Number of the ticket")
ARTICLE = Parameter("article", "str", "Short name of the article")
STATES = ("open", "waiting", "closed")
LANGUAGES = ("en", "de", "fr", "ja")


def limit(number: int) -> Parameter:
    """Return the parameter `limit` with this default."""
    return Parameter("limit", "int", "How many to give at most", number)


COMMANDS = (
    Command(
        "list-tickets",
        "List the tickets of a queue, newest first.",
        (
            Parameter("queue", "str", "Queue to look into"),
            Parameter("state", "choice", "Only those in this state", "open", STATES),
            limit(20),
        ),
        {"ticket_no": "int", "subject_line": "str", "opened_at": "str"},
        is_list=True,
        read_only=True,
    ),
    Command(
        "show-ticket",
        "Show one ticket with its history.",
        (TICKET, Parameter("with_log", "bool", "Add the log of changes", False)),
        {"subject_line": "str", "holder": "str", "history_lines": "list"},
        read_only=True,
    ),
    Command(
        "open-ticket",
        "Open a ticket in a queue.",
        (
            Parameter("queue", "str", "Queue that takes it"),
            Parameter("subject", "str", "What it is about"),
            Parameter("urgency", "choice", "How soon", "normal", ("low", "normal", "high")),
            Parameter("labels", "list", "Labels to put on it", ()),
        ),
        {"ticket_no": "int", "opened_at": "str"},
    ),
    Command(
        "close-ticket",
        "Close a ticket and tell its author why.",
        (TICKET, Parameter("reason", "choice", "Why", REQUIRED, ("solved", "duplicate", "spam"))),
        {"closed_at": "str"},
    ),
    Command(
        "reopen-ticket",
        "Open a closed ticket again.",
        (TICKET, Parameter("note", "str", "What has changed", "")),
        {"reopened_at": "str"},
    ),
    Command(
        "assign-ticket",
        "Give a ticket to somebody else.",
        (
            TICKET,
            Parameter("person", "str", "Who gets it"),
            Parameter("notify", "bool", "Send them a message", False),
        ),
        {"former_holder": "str"},
    ),
    Command(
        "merge-tickets",
        "Merge tickets into one; the others are gone.",
        (
            Parameter("target", "int", "Ticket that stays"),
            Parameter("sources", "list", "Tickets that end in it"),
        ),
        {"merged_count": "int"},
        destructive=True,
    ),
    Command(
        "delete-ticket",
        "Delete a ticket and everything attached to it.",
        (TICKET, Parameter("keep_files", "bool", "Leave the attachments", False)),
        {"freed_bytes": "int"},
        destructive=True,
    ),
    Command(
        "add-comment",
        "Add a comment to a ticket.",
        (
            TICKET,
            Parameter("text", "str", "What it says"),
            Parameter("audience", "choice", "Who sees it", "public", ("public", "staff")),
        ),
        {"comment_no": "int"},
    ),
    Command(
        "list-comments",
        "List the comments of a ticket, oldest first.",
        (TICKET, limit(50)),
        {"comment_no": "int", "writer": "str", "body": "str"},
        is_list=True,
        read_only=True,
    ),
    Command(
        "delete-comment",
        "Delete a comment for good.",
        (TICKET, Parameter("comment", "int", "Number of the comment")),
        {"remaining": "int"},
        destructive=True,
    ),
    Command(
        "search-articles",
        "Find articles that answer a question, best first.",
        (
            Parameter("question", "str", "The question in plain words"),
            Parameter("language", "choice", "Language of the articles", "en", LANGUAGES),
            Parameter("threshold", "float", "Least score of a match", 0.25),
            limit(5),
        ),
        {"slug": "str", "headline": "str", "match_score": "float"},
        is_list=True,
        read_only=True,
    ),
    Command(
        "show-article",
        "Show an article as Markdown.",
        (ARTICLE, Parameter("language", "choice", "Which translation", "en", LANGUAGES)),
        {"headline": "str", "markdown": "str"},
        read_only=True,
    ),
    Command(
        "publish-article",
        "Publish a draft so that customers see it.",
        (
            ARTICLE,
            Parameter("topics", "list", "Topics to file it under"),
            Parameter("pinned", "bool", "Keep it on top", False),
        ),
        {"public_url": "str"},
    ),
    Command(
        "retract-article",
        "Turn an article back into a draft.",
        (ARTICLE, Parameter("reason", "str", "Why, for the log")),
        {"retracted_at": "str"},
    ),
    Command(
        "list-agents",
        "List the people who answer tickets.",
        (
            Parameter("team", "str", "Only this team", ""),
            Parameter("available", "bool", "Only those who are at work", False),
        ),
        {"login": "str", "open_load": "int"},
        is_list=True,
        read_only=True,
    ),
    Command(
        "invite-agent",
        "Invite somebody to answer tickets.",
        (
            Parameter("mail", "str", "Where the invitation goes"),
            Parameter("role", "choice", "What they may do", "agent", ("viewer", "agent", "lead")),
            Parameter("teams", "list", "Teams to join", ()),
        ),
        {"invitation_id": "str", "expires_at": "str"},
    ),
    Command(
        "remove-agent",
        "Remove somebody and hand over what they hold.",
        (
            Parameter("login_name", "str", "Who leaves"),
            Parameter("heir", "str", "Who takes over"),
        ),
        {"moved_tickets": "int"},
        destructive=True,
    ),
    Command(
        "export-report",
        "Compute the figures of some weeks.",
        (
            Parameter("weeks", "int", "How many weeks back", 4),
            Parameter("grouping", "choice", "By what", "queue", ("queue", "person", "topic")),
        ),
        {"group_name": "str", "median_hours": "float", "solved_share": "float"},
        is_list=True,
        read_only=True,
    ),
    Command(
        "run-survey",
        "Ask the authors of closed tickets how it went.",
        (
            Parameter("queue", "str", "Whose tickets"),
            Parameter("sample_share", "float", "Share of the authors to ask", 0.1),
        ),
        {"asked_count": "int", "survey_id": "str"},
    ),
)
