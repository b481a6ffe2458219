"""What is said of a refit, in plain sentences: the risk in words, wherever it is shown."""

from __future__ import annotations

from components.common.refit_figures import RefitFigures

RISK = (
    "Nobody has measured this model on rows that it has not seen: no row was left. The figures of "
    "the holdout are those of the model that was judged. What the newest rows have of their own (a "
    "strike, a broken sensor, wrong labels) it has learned, and no checkpoint of it was chosen by "
    "rows that it had not."
)


def names(refit: RefitFigures) -> str:
    """Which weights are which."""
    return (
        f"Weights of the refit: network.pt2 sha256 {refit.refitted.get('network.pt2', 'none')}; of "
        f"the judged model: {refit.judged.get('network.pt2', 'none')}."
    )


def how(refit: RefitFigures) -> str:
    """What it was trained on, and how far."""
    rows = ", ".join(f"{count:,} of {part}" for part, count in refit.rows.items())
    return f"Trained again, with the judged model's settings and seed, on {rows}: {refit.rule}."


def apart(refit: RefitFigures) -> str:
    """How far its predictions are from the judged model's."""
    shift = refit.shift
    if shift is None:
        return ""
    text = (
        f"On the {shift.rows:,} rows of the holdout its predictions differ from the judged model's "
        f"by {shift.mean:.4f} in the mean (95 % of the rows by less than {shift.p95:.4f})"
    )
    if shift.of_seeds:
        text += f", {shift.mean / shift.of_seeds:.1f} times what two seeds differ by"
    if shift.churned is not None:
        text += f"; {shift.churned:.2%} are decided otherwise"
    if shift.slices:
        largest = shift.slices[0]
        text += f"; most where {largest.words}: {largest.shift:.4f}"
    return text + "."


def told(refit: RefitFigures) -> str:
    """All of it in one text, as far as there is something to say."""
    if refit.outcome == "none":
        return ""
    first = RISK if refit.outcome == "refitted" else f"{refit.reason}."
    more = [how(refit), apart(refit), names(refit)] if refit.refitted else []
    return " ".join(each for each in (first, *more) if each)
