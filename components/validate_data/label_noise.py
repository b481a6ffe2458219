"""How many labels are wrong, as far as other rows can tell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from components.common.data_figures import Finding
from components.common.hashing import alike
from components.common.tables import quoted
from components.common.values import kind_of, number
from components.validate_data.drawn import PLACE, POSITIVE, lowest
from components.validate_data.subject import SAMPLE, Subject

Floats = npt.NDArray[np.float64]

_ROWS = 50_000  # of both classes: fewer than the sample has of each
_LEAST = 200  # rows of a class: with fewer there is no model to be confident
_FOLDS = 5
_CATEGORIES = 254  # the most frequent; the rest share one: the model takes 255
_SUREST = 0.02  # share of rows by which the doubt that always remains is measured
_MARGIN = 1.5  # of that doubt
_MOST_DOUBT = 0.25  # with more of it nobody can tell wrong labels from chance
_MOST_ARE_SURE = 0.5  # share of rows from which on those that are sure stand for all
_LEAST_AUC = 0.7  # labels flipped up to that doubt leave separable classes at 0.75


def find_label_noise(subject: Subject) -> list[Finding]:
    """Estimate the share of labels that are wrong, from a sample of 50,000 labelled rows.

    Each row gets a probability from gradient-boosted trees that were trained on the other four of
    five folds; near-duplicates share a fold. See `noise_share` for what is made of it. Nothing is
    said where the sample has fewer than 200 rows of a class.
    """
    labelled = subject.positives + subject.negatives
    if not subject.read or min(subject.positives, subject.negatives) < _LEAST:
        return []
    values, categorical, truth, folds = _sample(subject, labelled)
    if min(truth.sum(), (~truth).sum()) < _LEAST:
        return []
    probability = _out_of_fold(values, categorical, truth, folds)
    share, limit = noise_share(truth, probability), subject.settings.validation.label_noise
    if share <= limit:
        return []
    finding = subject.finding(
        "label_noise",
        f"about {share:.1%} of the labels are in confident doubt: models of the other rows say "
        f"otherwise (limit {limit:.1%}, {len(truth)} rows looked at)",
        measured=share,
        limit=limit,
        hint="look at how the labels are made; a share that is known and accepted goes into "
        "validation.label_noise",
    )
    return [finding]


def noise_share(truth: npt.NDArray[np.bool_], probability: Floats) -> float:
    """Estimate the share of labels that were flipped at random.

    A row is in doubt if it is labelled with one class and the model is as confident of the other
    as it is on average of that class's own rows (Northcutt, Jiang and Chuang 2021, confident
    learning, arXiv:1911.00068). That alone mistakes hard data for wrong labels: of clean labels
    at an AUC of 0.72 it doubts a fifth. What tells them apart is how probabilities are spread.
    Labels flipped at random lower the highest probability that there is by the share flipped
    (Scott, Blanchard and Handy 2013); the surest 2 % of rows show that doubt. Where it is all
    doubt there is, most rows are nearly as sure as those; where classes overlap, few are. So the
    model must also be within one and a half times that doubt to be confident.

    Labels flipped at random are as frequent among the rows that the model is confident of as among
    the others. So the share there is the share of all, if those rows are many: half of them, since
    half of each class is surer than its mean. Where they are fewer, classes overlap, and what is
    found among them is no noise: it counts with the square of what they are of that half.

    Args:
        truth: Labels, bool [N].
        probability: Of the positive class, from models that have not seen the row, [N].

    Returns:
        Mean and standard deviation over four made sets of 20,000 rows, in per cent, by the AUC that
        could be reached on the clean labels:

        | flipped | 0.81 | 0.93 | 0.97 | 0.98 | 0.99 |
        |---|---|---|---|---|---|
        | 0 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 |
        | 1 | 0.1 ± 0.1 | 0.1 ± 0.1 | 0.4 ± 0.2 | 0.4 ± 0.3 | 0.6 ± 0.2 |
        | 3 | 0.2 ± 0.1 | 1.1 ± 0.5 | 1.8 ± 0.3 | 2.4 ± 0.7 | 2.9 ± 0.2 |
        | 10 | 6.4 ± 1.6 | 9.3 ± 2.9 | 10.3 ± 0.3 | 10.2 ± 0.2 | 10.0 ± 0.2 |

        Of 3,000 rows single estimates are half as large again (15.7 for 10 at 0.93), and clean
        labels at an AUC of 0.76 were taken for 10 once (8,000 rows: at most 1). 0 where the model's
        own AUC is below 0.7: wrong cannot be told from chance there. Noise that features explain
        (one shop mislabels) looks like signal and is not seen; classes that a few coarse features
        tell apart with equal odds everywhere look like noise and are taken for it.
    """
    from sklearn.metrics import roc_auc_score

    if roc_auc_score(truth, probability) < _LEAST_AUC:
        return 0.0
    count = len(truth)
    top = min(count, max(50, round(_SUREST * count)))
    sure = np.zeros(count, dtype=bool)
    doubted = np.zeros(count, dtype=bool)
    for labelled, confidence in ((truth, probability), (~truth, 1 - probability)):
        surest = np.argpartition(-confidence, top - 1)[:top]
        doubt = 1 - labelled[surest].mean()
        if doubt > _MOST_DOUBT:
            continue
        confident = confidence >= max(confidence[labelled].mean(), 1 - _MARGIN * doubt)
        sure |= confident
        doubted |= confident & ~labelled
    if not sure.any():
        return 0.0
    weight = min(1.0, sure.mean() / _MOST_ARE_SURE) ** 2
    return float(doubted.sum() / sure.sum() * weight)


def _sample(
    subject: Subject, labelled: int
) -> tuple[Floats, list[bool], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Features [N, columns], which of them are categories, labels [N] and folds [N]."""
    names = subject.read
    categorical = [kind_of(subject.columns[name]) == "text" for name in names]
    asked = [
        f"CAST({quoted(name)} AS VARCHAR)" if text else number(name, subject.columns[name])
        for name, text in zip(names, categorical, strict=True)
    ]
    selected = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(asked))
    fold = alike(subject.content or names, subject.columns)
    chosen = subject.connection.execute(
        f"SELECT {selected}, {POSITIVE} AS positive, CAST({fold} % {_FOLDS} AS BIGINT) AS fold "
        f"FROM {SAMPLE} WHERE {lowest(_ROWS, labelled)} "
        f"ORDER BY {PLACE}, {', '.join(f'c{i}' for i in range(len(names)))}"
    ).to_arrow_table()
    columns = [chosen[f"c{i}"].to_pandas() for i in range(len(names))]
    values = np.column_stack(
        [
            _codes(column) if text else np.asarray(column, dtype=np.float64)
            for column, text in zip(columns, categorical, strict=True)
        ]
    )
    truth = chosen["positive"].to_numpy().astype(bool)
    return values, categorical, truth, chosen["fold"].to_numpy()


def _codes(column: pd.Series[str]) -> Floats:
    """Texts as numbers, the most frequent first, the rare ones sharing one; null is NaN."""
    counts = column.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    code = {value: min(i, _CATEGORIES) for i, value in enumerate(counts.index)}
    return column.map(code).to_numpy(dtype=np.float64, na_value=np.nan)


def _out_of_fold(
    values: Floats,
    categorical: list[bool],
    truth: npt.NDArray[np.bool_],
    folds: npt.NDArray[np.int64],
) -> Floats:
    """The probability of each row from the model that has not seen its fold, [N]."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    probability = np.full(len(truth), truth.mean())
    for fold in range(_FOLDS):
        inside, outside = folds == fold, folds != fold
        known = ~np.isnan(values[outside]).all(axis=0)  # the trees refuse a column without values
        if not (inside.any() and known.any() and len(np.unique(truth[outside])) == 2):
            continue
        # Small trees of many rows: what is learned of a row must come from many others.
        model = HistGradientBoostingClassifier(
            max_iter=80, max_leaf_nodes=8, min_samples_leaf=50, early_stopping=False,
            categorical_features=np.array(categorical)[known], random_state=0,
        ).fit(values[outside][:, known], truth[outside])  # fmt: skip
        probability[inside] = model.predict_proba(values[inside][:, known])[:, 1]
    return probability
