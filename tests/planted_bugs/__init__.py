"""Bugs that train without an error, each planted into a healthy task, and what finds them.

contract.py       what a healthy task and a bug are
healthy_*.py      tasks of all kinds on which no check may fail; healthy.py has them all
tables.py, preprocessors.py: what they share
planting.py       ways to plant a bug
bugs_*.py         the bugs, by theme; bugs.py has them all
catalogue.py      writes docs/checks.md
"""
