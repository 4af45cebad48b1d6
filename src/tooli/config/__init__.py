"""Settings from flags, environment variables and files, merged into one value each.

    flag ▸ TOOLI_* ▸ .env ▸ .tooli.yaml, pyproject.toml ▸ user ▸ system ▸ default

The highest layer that sets a setting wins. For a security setting, the strictest value of all
layers applies.
"""
