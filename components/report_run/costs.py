"""What a training cost, in sentences: a step's time and its parts, memory, utilisation, waiting."""

from __future__ import annotations

from statistics import median

from components.common.figures import TrainFigures
from components.report_run.formats import number, percent, plural, seconds, size

PARTS = ("data", "forward", "backward", "optimiser", "communication")


def of_training(seen: TrainFigures) -> str:
    """Return what is known; empty if nothing was measured."""
    said = [_step(seen)]
    used = [p.mfu for p in seen.curve if p.mfu is not None]
    if used:
        said.append(f"Model FLOPs utilisation: {percent(median(used))}.")
    held = [p.peak_memory_bytes for p in seen.curve if p.peak_memory_bytes is not None]
    if held:
        where = "GPU memory" if seen.device == "cuda" else "memory"
        said.append(f"Peak {where} of the first process: {size(max(held))}.")
    waited = sum(p.checkpoint_stall for p in seen.curve)
    if waited:
        said.append(f"Checkpoints kept training waiting for {_time(waited)} in all.")
    return " ".join(sentence for sentence in said if sentence)


def step_parts(seen: TrainFigures) -> dict[str, float]:
    """Return the median seconds of each part of a measured step, the longest first."""
    parts = {}
    for part in PARTS:
        known = [s for p in seen.curve if (s := getattr(p, f"seconds_{part}")) is not None]
        if known:
            parts[part] = median(known)
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def _step(seen: TrainFigures) -> str:
    parts = step_parts(seen)
    whole = sum(parts.values())
    if not whole:
        return ""
    measured = sum(p.seconds_forward is not None for p in seen.curve)
    shares = ", ".join(f"{part} {percent(s / whole)}" for part, s in parts.items() if s)
    return f"A step took {_time(whole)} (median of {plural(measured, 'step')} measured): {shares}."


def _time(value: float) -> str:
    return f"{number(1000 * value)} ms" if value < 1 else seconds(value)
