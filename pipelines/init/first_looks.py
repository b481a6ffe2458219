"""What a person should look at first: where a proposal is a guess."""

from __future__ import annotations

from pipelines.init.proposal import Proposal
from pipelines.init.suite import freshness


def check_first(proposal: Proposal) -> list[str]:
    """Return sentences, the gravest first."""
    label, sample, features = proposal.label, proposal.sample, proposal.features
    points = []
    for difference in sample.differences:
        points.append(f"**Objects differ**: {difference}. A run stops there: mend the data.")
    for name in proposal.leaks:
        points.append(
            f"**`{name}`** {features.left_out[name]}. If it is known before the label is, put it "
            "into `task.py`; it was left out."
        )
    points.append(
        "**What is known in time?** Each column that `task.py` reads must be known when the "
        "prediction is made. No sample can tell; take out what comes later: "
        + ", ".join(f"`{name}`" for name in features.used[:12])
        + (", …" if len(features.used) > 12 else "")
        + "."
    )
    points.append(
        f"**The label**: {label.why}; {label.rate:.1%} of the sample are, and "
        f"{1 - label.labelled:.1%} have no label."
    )
    points.append(
        f"**The row's key** ({', '.join(f'`{name}`' for name in proposal.key)}): "
        f"{proposal.key_why}. It must stay unique as data comes: a run stops where it is not."
    )
    if not proposal.time:
        points.append(
            f"**No time column**: {proposal.time_why}. Rows are divided by "
            f"{proposal.split.by}, so nothing shows how the model ages."
        )
    elif proposal.split.by != "time":
        points.append(f"**Not divided by time**: {' '.join(proposal.split.why)}")
    if proposal.time and not freshness(proposal):
        points.append("**Freshness** is not asked for: the newest row was old already.")
    if sample.source.others:
        points.append(
            f"**Left alone**: {len(sample.source.others)} objects that do not end in "
            f"`{sample.source.ending}`, for example `{sample.source.others[0]}`."
        )
    return points
