"""What some real processes (gloo) save, others load: bit for bit, moments too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from checkpoint_ranks_worker import do
from checkpoint_samples import Training, same, shard_of, steps_of
from ranks import start_ranks

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with what two ranks have saved, by strategy, or failed to, by what they tried."""
    names = ("ddp", "fsdp", "fail", "discard")
    found = {name: tmp_path_factory.mktemp(name) for name in names}
    saves = [(found[name], "save", name) for name in ("ddp", "fsdp")]
    start_ranks(2, do, [*saves, *((found[name], name, "ddp") for name in ("fail", "discard"))])
    return found


LOADS = [  # saved by, loaded by, on so many ranks
    ("ddp", "ddp", 4),
    ("ddp", "fsdp", 2),
    ("fsdp", "ddp", 2),
    ("fsdp", "fsdp", 4),
    ("fsdp", "hsdp", 4),
]


@pytest.fixture(scope="module")
def loaded(
    stores: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str, int], Path]:
    """Folders with what was loaded from copies of what two ranks have saved."""
    found = {}
    for load in LOADS:
        place = tmp_path_factory.mktemp("-".join(map(str, load))) / "copy"
        found[load] = Path(shutil.copytree(stores[load[0]], place))
    damaged = found["damaged", "fsdp", 2] = tmp_path_factory.mktemp("damaged") / "copy"
    shutil.copytree(stores["fsdp"], damaged)
    shard = shard_of(damaged / "store", 5, rank=1)
    shard.write_bytes(shard.read_bytes()[:-1])
    for ranks in (2, 4):
        jobs = [(found[load], "load", load[1]) for load in found if load[2] == ranks]
        start_ranks(ranks, do, jobs)
    return found


@pytest.fixture(params=["ddp", "fsdp"])
def saved(request: pytest.FixtureRequest, stores: dict[str, Path]) -> Path:
    return stores[request.param]


def state(folder: Path, name: str) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(folder / f"{name}.pt", weights_only=True)
    return found


def test_one_process_loads_it_and_evaluation_reads_it(saved: Path) -> None:
    run = Training(saved / "store", seed=7)
    restored = run.saver.restore()
    assert restored is not None
    assert same(run.state(), state(saved, "fifth"))
    assert restored.own is not None
    assert restored.own["torch"].tolist() == [0] * 5
    third, fifth = run.checkpoints.manifests()
    assert (third.step, third.metrics, fifth.step) == (3, {"loss": 0.5}, 5)
    for manifest, name in ((third, "third"), (fifth, "fifth")):
        model = run.checkpoints.model_state(manifest)
        assert model is not None
        expected = {k: v for k, v in state(saved, name).items() if k.startswith("model.")}
        assert same({f"model.{key}": value for key, value in model.items()}, expected)


@pytest.mark.parametrize(("saved_by", "strategy", "ranks"), LOADS)
def test_any_strategy_on_any_number_of_ranks_loads_it(
    loaded: dict[tuple[str, str, int], Path], saved_by: str, strategy: str, ranks: int
) -> None:
    folder = loaded[saved_by, strategy, ranks]
    assert same(state(folder, "loaded"), state(folder, "fifth"))
    said = json.loads((folder / "loaded.json").read_text())
    own = [[rank] * 5 if rank < 2 else None for rank in range(ranks)]
    assert said == [[5, each, []] for each in own]


def test_each_rank_writes_about_half_and_nothing_is_written_twice(saved: Path) -> None:
    manifest = Checkpoints(FolderStore(saved / "store"), "run").manifests()[-1]
    sizes = [shard.size for shard in manifest.shards.values()]
    weights = sum(t.nbytes for t in state(saved, "fifth").values())
    assert len(sizes) == 2
    assert sum(sizes) < weights + 64 * 2 * len(manifest.tensors)
    assert max(sizes) < 0.65 * sum(sizes)


def test_damage_to_either_shard_is_seen_by_all_ranks_and_the_one_before_is_used(
    loaded: dict[tuple[str, str, int], Path],
) -> None:
    folder = loaded["damaged", "fsdp", 2]
    shard = shard_of(folder / "store", 5, rank=1)
    assert same(state(folder, "loaded"), state(folder, "third"))
    for step, _, damaged in json.loads((folder / "loaded.json").read_text()):
        assert step == 3
        assert damaged == [
            f"run/000000005/{shard.name} is damaged: its sha256 is not the manifest's"
        ]


def test_a_checkpoint_that_one_rank_could_not_write_fails_on_all_and_leaves_nothing(
    stores: dict[str, Path],
) -> None:
    folder = stores["fail"]
    first, second = json.loads((folder / "failed.json").read_text())
    for kind, words, left in first[0]:
        assert (kind, left) == ("PeerFailed", ["000000001"])
        assert words == "rank 1 failed: MemoryError"
    assert [kind for kind, _, _ in second[0]] == ["MemoryError"] * 3
    for steps, resumed, damaged in (first[1:], second[1:]):
        assert (steps, resumed) == ([1, 5], 1)
        name = shard_of(folder / "failing", 5).name
        assert damaged == [f"run/000000005/{name} is damaged: its sha256 is not the manifest's"]
    assert steps_of(Checkpoints(FolderStore(folder / "failing"), "run")) == [1, 5]


def test_a_store_that_one_rank_cannot_list_leaves_no_rank_waiting_for_another(
    stores: dict[str, Path],
) -> None:
    words = ["it cannot be listed", "rank 0 failed: it cannot be listed"]
    assert json.loads((stores["discard"] / "discarded.json").read_text()) == [
        [w, [1, 2]] for w in words
    ]
