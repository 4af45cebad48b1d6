"""Build hooks that include the skill of an app in its wheel."""
