"""Damage checkpoints in every way; each time it must be noticed, and the one before used.

    python -m tests.proofs.checkpoints         # five hundred times
    python -m tests.proofs.checkpoints 2000

Each time one to three of the newest checkpoints of a real training are damaged at random places: a
single bit flipped, a file cut short, a file deleted; shards and manifests alike. A training is then
started over them. The last line of stdout is one JSON object: `damaged` checkpoints; `noticed`, how
many of them were named in a report (a deleted manifest leaves no checkpoint to name: then, that
it was not used); `recovered`, after how many of the attempts training stood, bit for bit, where the
newest whole checkpoint had been.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from infra.folder import FolderStore
from tests.proofs.reporting import tell
from training_core.checkpoints.catalogue import Checkpoints
from training_core.checkpoints.saver import Saver
from training_core.checkpoints.settings import CheckpointSettings
from training_core.parallel.single import SingleProcess

_STEPS = (3, 6, 9, 12)  # with a checkpoint; the first of them is never damaged


@dataclass(frozen=True)
class Damage:
    """What was done to a checkpoint: `where` is the file, `how` in words."""

    step: int
    where: str
    how: str


class SmallTraining:
    """A network, its optimiser and its checkpoints."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.Linear(24, 1))
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=0.01, fused=True)
        self.checkpoints = Checkpoints(FolderStore(folder), "run")
        self.saver = Saver(
            self.checkpoints,
            model=self.model,
            optimisers=[self.optimiser],
            strategy=SingleProcess(torch.device("cpu")),
            settings=CheckpointSettings(keep_last=len(_STEPS)),
        )

    def run(self) -> dict[int, list[Tensor]]:
        """Train; return what the state was at each checkpoint."""
        states = {}
        for step in range(1, _STEPS[-1] + 1):
            self.model(torch.randn(16, 6)).square().sum().backward()
            self.saver.weights_may_change()
            self.optimiser.step()
            self.optimiser.zero_grad()
            if step in _STEPS:
                own = {"torch": torch.get_rng_state()}
                self.saver.begin(
                    step=step, samples=16 * step, metrics={"loss": 1 / step},
                    progress={"best": 1 / step}, extra={}, own=own,
                )  # fmt: skip
                states[step] = self.state()
        self.saver.finish()
        return states

    def state(self) -> list[Tensor]:
        """Copies of weights, buffers and moments."""
        moments = [t for state in self.optimiser.state.values() for t in state.values()]
        return [tensor.clone() for tensor in (*self.model.state_dict().values(), *moments)]


def damage(folder: Path, step: int, chance: random.Random) -> Damage:
    """Damage a checkpoint at a random place."""
    place, name = folder / f"run/{step:09d}", chance.choice(["shard-0.*.bin", "manifest.json"])
    (path,) = place.glob(name)
    where, content = path.relative_to(folder).as_posix(), bytearray(path.read_bytes())
    kind = chance.choices(["flip", "truncate", "delete"], [8, 3, 1])[0]
    if kind == "delete":
        path.unlink()
        return Damage(step, where, "deleted")
    if kind == "truncate":
        length = chance.randrange(len(content))
        path.write_bytes(content[:length])
        return Damage(step, where, f"cut to {length} of {len(content)} bytes")
    byte, bit = chance.randrange(len(content)), chance.randrange(8)
    content[byte] ^= 1 << bit
    path.write_bytes(content)
    return Damage(step, where, f"bit {bit} of byte {byte} flipped")


def prove(count: int, folder: Path) -> dict[str, int]:
    """Damage `count` checkpoints; return the figures."""
    states = SmallTraining(folder, seed=0).run()
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    chance = random.Random(0)
    figures = {"damaged": 0, "noticed": 0, "recovered": 0}
    while figures["damaged"] < count:
        for path, content in whole.items():
            path.write_bytes(content)
        last = min(chance.choices([1, 2, 3], [8, 1, 1])[0], count - figures["damaged"])
        done = [damage(folder, step, chance) for step in _STEPS[-last:]]
        again = SmallTraining(folder, seed=1)
        restored = again.saver.restore()
        expected = _STEPS[-last - 1]
        reports = again.checkpoints.damaged
        stands = restored is not None and restored.manifest.step == expected
        exact = all(map(torch.equal, again.state(), states[expected]))
        noticed = [
            any(words.startswith(each.where) for words in reports)
            or (each.how == "deleted" and each.where.endswith("manifest.json") and stands)
            for each in done
        ]
        figures["damaged"] += len(done)
        figures["noticed"] += sum(noticed)
        figures["recovered"] += len(done) * (stands and exact)
        if not (all(noticed) and stands and exact):
            print(f"{done} was not mended: reports {reports}", file=sys.stderr, flush=True)
    return figures


def main() -> int:
    """Print the figures; 0 if all damage was noticed and mended."""
    parser = argparse.ArgumentParser(description="Damage checkpoints and prove that none is used.")
    parser.add_argument("number", nargs="?", type=int, default=500, metavar="N")
    parser.add_argument("--count", type=int, help="the same as N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="checkpoints-") as folder:
        figures = prove(arguments.count or arguments.number, Path(folder))
    tell("checkpoints", figures)
    return 0 if len(set(figures.values())) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
