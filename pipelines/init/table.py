"""What was read and decided, as a short table."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.init.proposal import Proposal

_MOST_NAMES = 12


def rows_of(proposal: Proposal) -> list[tuple[str, str]]:
    """Return names and what was decided."""
    sample, label, split = proposal.sample, proposal.label, proposal.split
    features = proposal.features
    parts = "days" if split.by == "time" else "of the rows"
    rows = [
        (
            "read",
            f"{sample.rows:,} rows of {len(sample.read)} of {len(sample.source.objects)} objects; "
            f"in all about {sample.likely_rows:,}",
        ),
        ("label", f"{label.name}: {label.positive!r} in {label.rate:.1%}; {label.why}"),
        ("row key", f"{', '.join(proposal.key)}: {proposal.key_why}"),
        ("time", f"{proposal.time or 'none'}: {proposal.time_why}"),
        (
            "split",
            f"by {' '.join([split.by, *split.group])}, {split.holdout:g} and "
            f"{split.validation:g} {parts} for holdout and validation",
        ),
        ("categories", _names(features.categories)),
        ("numbers", _names(features.numbers)),
        ("left out", _names([n for n in features.left_out if n != label.name])),
    ]
    rows += [("leak?", f"{name} {features.left_out[name]}") for name in proposal.leaks]
    rows += [("differs", words) for words in sample.differences]
    return rows


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (", ".join(names[:_MOST_NAMES]) + more) or "none"
