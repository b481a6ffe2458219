"""Whether the data is fit to train on: the first sentence of its page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from components.common.data_figures import ValidateFigures
from components.common.records import StepRecord
from components.report_run import data_words
from components.report_run.formats import count, plural, sentence, short, title
from components.report_run.seen import Seen

DATA_STEPS = ("snapshot_data", "validate_data", "split_data")
LONGEST = 600  # characters of a reason


class Fitness(StrEnum):
    """What the data steps said, for people."""

    FIT = "fit"
    WARNED = "fit, with warnings"
    REFUSED = "refused"
    NOT_JUDGED = "not judged"
    NOTHING_NEW = "nothing new"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Judgement:
    """The verdict, why, and what a person should do now (empty: nothing is known)."""

    fitness: Fitness
    headline: str
    reason: str
    advice: str


def judge(records: dict[str, StepRecord], seen: Seen, absent: dict[str, str]) -> Judgement:
    """Fit is claimed only where validate_data ended well and its figures can be read.

    Args:
        records: What the steps left.
        seen: Their figures.
        absent: For steps without figures, why there are none.
    """
    refusing = next((s for s in DATA_STEPS if s in records and _stopped(records[s])), "")
    if refusing:
        return _refused(records[refusing], seen.validate_data)
    snapshot, validated = seen.snapshot_data, seen.validate_data
    if snapshot is not None and snapshot.decision == "nothing_new":
        return Judgement(
            Fitness.NOTHING_NEW,
            "Nothing changed since an earlier run.",
            f"Data, code and configuration are those of run {snapshot.same_key_run}.",
            f"The data was judged then: evertrain data PROJECT --run {snapshot.same_key_run}",
        )
    if "snapshot_data" in records and records["snapshot_data"].status == "skipped":
        return Judgement(
            Fitness.SKIPPED,
            "The data was not looked at: another run was under way.",
            sentence(short(records["snapshot_data"].reason, LONGEST)),
            "Nothing has to be done: a later run looks at what came.",
        )
    ended_well = "validate_data" in records and records["validate_data"].status == "done"
    if validated is None or not ended_well:
        missing = "snapshot_data" if snapshot is None else "validate_data"
        record = records.get(missing)
        reason = sentence(short(record.reason, LONGEST)) if record else ""
        advice = sentence(record.hint) if record else ""
        why = reason or absent[missing]
        return Judgement(Fitness.NOT_JUDGED, "The data was not judged.", why, advice)
    return _fit(validated)


def _stopped(record: StepRecord) -> bool:
    return record.status == "stopped"


def _refused(record: StepRecord, validated: ValidateFigures | None) -> Judgement:
    headline = f"The data was refused by {record.step}"
    if record.step == "validate_data" and validated is not None:
        findings = sum(f.level == "block" for f in validated.findings)
        failed = sum(not (e.success or data_words.is_warning(e)) for e in validated.expectations)
        parts = [plural(findings, "finding")] * (findings > 0)
        parts += [plural(failed, "expectation")] * (failed > 0)
        if parts:
            verb = "blocks" if findings + failed == 1 else "block"
            headline += f": {' and '.join(parts)} {verb} it"
    columns = [c.column for c in validated.columns] if validated is not None else []
    columns += [f.column for f in validated.findings] if validated is not None else []
    said = data_words.stated(short(record.reason, LONGEST), columns)
    reason = said or "No reason was recorded."
    advice = sentence(record.hint) or "Mend the data at its source, then run again."
    return Judgement(Fitness.REFUSED, sentence(headline), reason, advice)


def _fit(seen: ValidateFigures) -> Judgement:
    warned = [finding.message for finding in seen.findings]
    warned += [
        f"{title(e.name)}{f' of {e.column}' if e.column else ''}: expected {e.expected}, "
        f"saw {e.observed}"
        for e in seen.expectations
        if not e.success
    ]
    if not warned:
        said = [data_words.expected(seen), data_words.found(seen), *data_words.not_checked(seen)]
        calm = " ".join(said)
        advice = "Nothing has to be done."
        return Judgement(Fitness.FIT, "The data is fit to train on.", calm, advice)
    more = f" And {count(len(warned) - 1)} more, below." if len(warned) > 1 else ""
    hint = next((finding.hint for finding in seen.findings if finding.hint), "")
    return Judgement(
        Fitness.WARNED,
        f"The data is fit to train on, with {plural(len(warned), 'warning')}.",
        data_words.stated(short(warned[0], LONGEST), [f.column for f in seen.findings]) + more,
        sentence(hint) or "Look at what was found, below: nothing was stopped.",
    )
