"""What is set outside the command line: variables, project, user, system. Seven layers, one answer.

    flag ▸ TOOLI_* ▸ .env ▸ .tooli.yaml, pyproject.toml ▸ user ▸ system ▸ default

The highest layer that says something wins. Of a security setting the strictest word of all
layers holds, whoever says it.
"""
