"""Pages of docs/ that are written from the code: every setting, every command.

settings.py    docs/settings.md, from the JSON Schema of `evertrain.yaml`
commands.py    docs/commands.md, from the parser of the command line
"""
