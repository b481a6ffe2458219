"""The model card: what a version is, what it was judged by, and what nobody has judged.

Markdown in plain sentences, made of what the steps have recorded; what was not recorded is left
out or, where it limits what is known of the model, said to be missing.
"""

from __future__ import annotations

import re
from typing import Any

from components.common.decision_figures import EvaluateFigures, SliceFigure, SmokeFigures
from components.common.ensemble_figures import EnsembleFigures
from components.common.refit_figures import RefitFigures
from components.common.refit_words import RISK, apart, how, names
from components.common.settings import ProjectSettings
from components.report_run import ensemble_words
from components.report_run.formats import clean, fixed, instant, interval, number, plural, title

_COLUMNS, _SLICES, _REASONS = 60, 10, 6  # of each, so many are named
_WHAT = {
    "binary": "the probability that {label} is 1",
    "multiclass": "a probability for each class of {label}",
    "multilabel": "the probability of each of several labels, {label} the first of them",
    "regression": "the value of {label}",
    "sequence": "probabilities of each next token of {label}",
}
_SAID = {"pass": "passed", "fail": "**failed**", "unsure": "unsure", "skipped": "not judged"}


def card(
    verdict: EvaluateFigures,
    *,
    project: ProjectSettings,
    version: str,
    run: str,
    run_key: str,
    package_manifest: dict[str, Any],
    refit: RefitFigures | None = None,
    ensemble: EnsembleFigures | None = None,
) -> str:
    """Return the card of a version in Markdown.

    Args:
        package_manifest: The package's `package.json`.
        refit: The certificate of a version that was trained again after its verdict.
        ensemble: What select_checkpoint has recorded of it; None: it is none, or that is not known.
    """
    name, judged = escaped(project.name), [*_decision(verdict), "", *_metrics(verdict)]
    sections = {
        "What it is for": _purpose(project, package_manifest),
        "How to load it": _loading(project.name, version),
        "Trained again on all rows": _refit(refit),
        "What it learned from": _data(verdict, run, run_key, package_manifest, again=bool(refit)),
        "What it is made of": _ensemble(ensemble, package_manifest),
        ("How the judged model was judged" if refit else "How it was judged"): judged,
        "Gates": _gates(verdict),
        "Where it is weak": _slices(verdict),
        "How sure that is": _certainty(verdict),
        "The package": _package(refit.smoke if refit else verdict.smoke),
        "What was not judged": _limits(verdict),
    }
    lines = [f"# {name}, version {escaped(version)}"]
    for heading, body in sections.items():
        if body:
            lines += ["", f"## {heading}", "", *body]
    return "\n".join(lines) + "\n"


def escaped(text: object) -> str:
    """Return a text that Markdown and HTML show as it is, on one line."""
    line = " ".join(clean(str(text)).split())
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("://", "&#58;//")):
        line = line.replace(mark, entity)
    line = re.sub(r"(?<!\w)www\.", "www&#46;", line, flags=re.IGNORECASE)
    return re.sub(r"(?<!&)[\\`*_\[\]|~!$]|(?<!&)#", r"\\\g<0>", line)


def _purpose(project: ProjectSettings, manifest: dict[str, Any]) -> list[str]:
    columns = [str(column) for column in manifest.get("columns", [])]
    label = escaped(manifest.get("label", "its label"))
    what = _WHAT.get(str(manifest.get("kind")), "{label}").format(label=label)
    shown = ", ".join(map(escaped, columns[:_COLUMNS]))
    more = f", and {len(columns) - _COLUMNS} more" if len(columns) > _COLUMNS else ""
    text = f"{escaped(project.name)} predicts {what}"
    if columns:
        text += f", from {plural(len(columns), 'raw column')} of a row: {shown}{more}"
    return [f"{text}."]


def _loading(name: str, version: str) -> list[str]:
    return [
        "```python",
        f'mlflow.pyfunc.load_model("models:/{name}/{version}").predict(frame)',
        "```",
        "",
        "`frame` is a pandas DataFrame of raw rows; torch, pandas and numpy are all that is needed "
        "beside mlflow.",
    ]


def _refit(refit: RefitFigures | None) -> list[str]:
    if refit is None:
        return []
    return [f"**{RISK}**", "", *(f"- {escaped(say(refit))}" for say in (how, apart, names))]


def _data(
    verdict: EvaluateFigures, run: str, run_key: str, manifest: dict[str, Any], *, again: bool
) -> list[str]:
    facts = manifest.get("facts", {})
    seen = facts.get("seen", {})
    lines = []
    if "until" in seen:
        lines.append(f"- Training and selection saw rows until {escaped(instant(seen['until']))}.")
    elif "rule" in seen:
        rule = escaped(seen["rule"])
        lines.append(f"- Training and selection saw the rows of a rule by hash, sha256 {rule}.")
    rows, clusters = plural(verdict.rows, "row"), plural(verdict.clusters, "independent unit")
    lines.append(
        f"- The judged model was judged on {rows} of the holdout, of {clusters}, that it had not "
        "seen; this one has learned from them."
        if again
        else f"- It was judged on {rows} of the holdout, of {clusters}, that it has not seen."
    )
    if "step" in facts:
        lines.append(f"- It is the checkpoint of step {escaped(facts['step'])}.")
    lines.append(f"- Run {escaped(run)}; key of data, code and configuration: {escaped(run_key)}.")
    digests = {key: value for key, value in facts.items() if key.endswith("_digest")}
    digests |= {key: value for key, value in manifest.get("files", {}).items() if ".pt2" in key}
    lines += [
        f"- {escaped(title(key))}: sha256 {escaped(value)}." for key, value in digests.items()
    ]
    return lines


def _ensemble(seen: EnsembleFigures | None, manifest: dict[str, Any]) -> list[str]:
    told = manifest.get("facts", {}).get("ensemble", {}).get("members", [])
    if seen is None:
        names = ", ".join(escaped(member["what"]) for member in told)
        return [f"It is the mean of {plural(len(told), 'model')}: {names}."] if told else []
    lines = [escaped(ensemble_words.summary(seen)), ""]
    lines += [f"- {escaped(what)}: {value}" for what, value in ensemble_words.members(seen)]
    lines += [f"- not in it: {escaped(words)}" for words in seen.left_out]
    lines += ["", "| cost | one model | the ensemble | |", "|---|---|---|---|"]
    return lines + [f"| {' | '.join(row)} |" for row in ensemble_words.costs(seen)]


def _decision(verdict: EvaluateFigures) -> list[str]:
    against = f"champion version {escaped(verdict.champion)}" if verdict.champion else "no champion"
    reasons = [f"- {escaped(reason)}" for reason in verdict.reasons[:_REASONS]]
    return [f"Verdict: **{verdict.verdict}**, by {_metric(verdict)}, against {against}:", *reasons]


def _name(verdict: EvaluateFigures) -> str:
    return escaped(title(verdict.metric))


def _metric(verdict: EvaluateFigures) -> str:
    which = verdict.directions.get(verdict.metric)
    return _name(verdict) + (f" ({which} is better)" if which else "")


def _metrics(verdict: EvaluateFigures) -> list[str]:
    """A table: a row each metric, the main one first; a column each model."""
    models = [model for model, scores in verdict.metrics.items() if scores]
    if not models:
        return []
    names = {name: None for model in models for name in verdict.metrics[model]}
    ordered = sorted(names, key=lambda name: name != verdict.metric)
    lines = [f"| | {' | '.join(escaped(title(model)) for model in models)} |"]
    lines.append("|---" * (len(models) + 1) + "|")
    for name in ordered:
        cells = [_cell(verdict, model, name) for model in models]
        lines.append(f"| {escaped(title(name))} | {' | '.join(cells)} |")
    if any(verdict.intervals.values()):
        lines += ["", f"In brackets: {verdict.confidence:.0%} intervals."]
    if verdict.comparisons:
        lines += ["", "Differences, row by row; above 0 this model is better:"]
    lines += [
        f"- against {escaped(title(each.against))}: {fixed(each.difference, 4)} "
        f"({interval(each.low, each.high)})"
        for each in verdict.comparisons
    ]
    return lines


def _cell(verdict: EvaluateFigures, model: str, name: str) -> str:
    value = verdict.metrics[model].get(name)
    if value is None:
        return "–"
    around = verdict.intervals.get(model, {}).get(name)
    return fixed(value, 4) + (f" ({interval(*around)})" if around else "")


def _gates(verdict: EvaluateFigures) -> list[str]:
    if not verdict.gates:
        return []
    lines = ["| gate | outcome | measured | needed |", "|---|---|---|---|"]
    return lines + [
        f"| {escaped(gate.name)} | {_SAID[gate.outcome]} | {escaped(gate.observed)} | "
        f"{escaped(gate.threshold)} |"
        for gate in verdict.gates
    ]


def _slices(verdict: EvaluateFigures) -> list[str]:
    weak = [each for each in verdict.slices if each.outcome in ("fail", "unsure")]
    weak.sort(key=lambda each: (each.outcome != "fail", each.difference or 0.0))
    if not verdict.slices:
        return []
    judged = plural(len(verdict.slices), "part")
    if not weak:
        return [f"In none of {judged} of the holdout is it shown or suspected to be too weak."]
    lines = [f"- {_slice(each, verdict)}" for each in weak[:_SLICES]]
    more = f"- and {len(weak) - _SLICES} more" if len(weak) > _SLICES else ""
    return [f"Of {judged} of the holdout, {len(weak)}:", "", *lines, *([more] if more else [])]


def _slice(each: SliceFigure, verdict: EvaluateFigures) -> str:
    shown = "worse than its margin" if each.outcome == "fail" else "not shown to be good enough"
    text = f"{escaped(each.words)} ({plural(each.rows, 'row')}): {shown}"
    if each.challenger is not None:
        text += f"; {_name(verdict)} {fixed(each.challenger, 4)}"
    if each.champion is not None:
        text += f", the champion’s {fixed(each.champion, 4)}"
    return text


def _certainty(verdict: EvaluateFigures) -> list[str]:
    lines = []
    if "challenger" in verdict.calibration_error:
        error = fixed(verdict.calibration_error["challenger"], 4)
        lines.append(f"- Expected calibration error: {error}.")
    if verdict.noise is not None:
        source = (
            "as the settings say"
            if verdict.noise.source == "settings"
            else f"measured in {plural(len(verdict.noise.runs), 'run')}"
        )
        lines.append(
            f"- Two trainings that differ by their seeds alone differ in {_name(verdict)} by "
            f"{number(verdict.noise.deviation)} (standard deviation; {source})."
        )
    if verdict.question is not None and verdict.question.uses > 1:
        lines.append(
            f"- These holdout rows were asked {number(verdict.question.uses)} times in all, so the "
            f"intervals are of {verdict.question.confidence:.1%} confidence."
        )
    if verdict.optimism is not None:
        lines.append(
            "- Choosing the best checkpoint made it look better on the validation split by "
            f"{number(verdict.optimism.expected)}; the holdout had no part in the choice."
        )
    return lines


def _package(smoke: SmokeFigures | None) -> list[str]:
    if smoke is None:
        return []
    figures = {
        "size": (smoke.size_mb, "MB"),
        "load, imports included": (smoke.load_seconds, "s"),
        "one row": (smoke.latency_ms, "ms"),
        "one row, 99th percentile": (smoke.latency_p99_ms, "ms"),
        "throughput": (smoke.rows_per_second, "rows a second"),
        "memory of the process": (smoke.peak_memory_mb, "MB"),
        "largest difference from the recorded predictions": (smoke.largest_difference, ""),
    }
    tried = "It was tried out" if smoke.outcome == "pass" else "Trying it out **failed**"
    return [
        f"{tried}: {escaped(smoke.message)}.",
        "",
        *[
            f"- {what}: {number(value)} {unit}".rstrip()
            for what, (value, unit) in figures.items()
            if value is not None
        ],
    ]


def _limits(verdict: EvaluateFigures) -> list[str]:
    missing = {
        "whether it beats a model in production: there was none": not verdict.champion,
        "single parts of the data": not verdict.slices,
        "whether its probabilities are right": (
            verdict.kind != "regression" and not verdict.calibration_error
        ),
        "how much a training with another seed differs": verdict.noise is None,
        "whether the package loads by itself, and how fast it is": verdict.smoke is None,
    }
    lines = [f"- {what}" for what, absent in missing.items() if absent]
    for gate in verdict.gates:
        if gate.outcome in ("skipped", "unsure"):
            lines.append(f"- {escaped(gate.name)}: {escaped(gate.message or _SAID[gate.outcome])}")
    return [*lines, "- rows unlike those of the holdout, and what follows from acting on it"]
