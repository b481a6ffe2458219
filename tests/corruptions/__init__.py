"""Ways in which real feeds go wrong, each with what must happen and by which check.

kinds.py       what a corruption is, and whether what happened is what had to happen
clean_feed.py  four months of clean deliveries
project.py     the project they arrive in: three months with a champion, then a fourth
deliveries/    its settings, suite and task: what a careful user writes
schema.py, values.py, codes.py, rows.py, labels.py, files.py, texts.py: the corruptions, by family
benign.py      changes that must not stop a run
catalogue.py   all of them, and the page docs/corruptions.md
"""
