"""`evertrain profile`, `evertrain lr` and `evertrain batch-size`: from a project to a page.

Nothing of the project changes: no run, no record, no checkpoint; what is left is a page in the
object store (`profile/`), which the next one replaces.
"""
