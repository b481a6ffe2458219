"""Let promoters race for one champion and die between any two writes; then look at the log.

    python -m tests.proofs.promotions         # a thousand races
    python -m tests.proofs.promotions 5000

In each race two to eight promoters at once promote, propose and approve, reject, or roll back, all
with the functions that the step and the commands call. Six of ten are to die at one of their writes
(version, entry, alias), before or after it is made, if they get that far. Races take turns on a
folder and on S3; one in twenty has a real MLflow on SQLite for its registry, the others one in
memory. Then what every command does first is done once, and whoever's run was killed gives the same
command again.

The last line of stdout is one JSON object. `lost` counts what is wrong with the log itself: holes,
entries that someone was told of and that are not there, champions replaced by what was never
compared with them, decisions on what was not open. `unrepaired` counts what is still wrong after
the repair: aliases, second versions or entries of one run.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from components.common.aliases import repair_aliases
from components.common.champion import PromotionLog
from infra.folder import FolderStore
from infra.s3 import S3Store
from infra.store import ObjectStore
from infra.tracking import connect
from tests.infra.loopback import BUCKET, S3Server
from tests.infra.seaweed import s3_running
from tests.proofs.promoters import (
    ACTIONS,
    Fate,
    Memory,
    MemoryRegistry,
    MlflowRegistry,
    MortalStore,
    Promoter,
)
from tests.proofs.promotion_faults import lost, raw_entries, wanted_aliases
from tests.proofs.reporting import tell

_MLFLOW_EVERY = 20
_WRITES = 7  # about as many as a promoter makes: a version, two entries, four aliases
Registries = Callable[[Fate], Any]
Stores = Callable[[], ObjectStore]


def prove(
    count: int, folder: Path, *, s3: S3Server | None, mlflow_every: int = _MLFLOW_EVERY
) -> dict[str, int]:
    """Hold `count` races; return the figures.

    Args:
        count: How many.
        folder: For stores and databases.
        s3: A server; None: folders only.
        mlflow_every: One in so many races has a real registry.
    """
    stores: list[Stores] = [lambda: FolderStore(folder / "stores" / uuid.uuid4().hex)]
    if s3 is not None:
        stores.append(_s3_stores(s3))
    figures = Counter(
        dict.fromkeys(
            (
                "races",
                "on_s3",
                "on_mlflow",
                "promoters",
                "crashes",
                "entries",
                "lost",
                "unrepaired",
            ),
            0,
        )
    )
    for number in range(count):
        store = stores[number % len(stores)]()
        real = number % mlflow_every == mlflow_every - 1
        registries = _mlflow(folder / "mlflow.db", f"race-{number}") if real else _memory()
        found = race(store, registries, random.Random(number))
        figures.update(found.figures)
        figures.update(races=1, on_s3=isinstance(store, S3Store), on_mlflow=real)
        for fault in found.faults:
            print(f"race {number} on {store.uri}: {fault}", file=sys.stderr, flush=True)
        if (number + 1) % 100 == 0:
            print(f"{number + 1}/{count}  {dict(figures)}", file=sys.stderr, flush=True)
    return dict(figures)


class Found:
    """What one race came to."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.faults: list[str] = []

    def add(self, kind: str, faults: list[str]) -> None:
        """Count faults of a kind."""
        self.figures[kind] += len(faults)
        self.faults += [f"{kind}: {fault}" for fault in faults]


def race(store: ObjectStore, registries: Registries, chance: random.Random) -> Found:
    """Hold one race; return its figures and what went wrong."""
    found, registry = Found(), registries(Fate(chance))
    early = [Promoter("promote", f"early-{n}") for n in range(chance.randrange(4))]
    early += [Promoter("reject", "early-proposal")] * (chance.random() < 0.3)
    for promoter in early:
        promoter.run(store, registry)
    late = [Promoter(chance.choice(ACTIONS), f"p{n}") for n in range(chance.randint(2, 8))]
    fates = [_fate(chance) for _ in late]
    start = threading.Barrier(len(late))

    def take_part(promoter: Promoter, fate: Fate) -> None:
        log_store, own = MortalStore(store, fate), registries(fate)
        start.wait()
        promoter.run(log_store, own)

    threads = [
        threading.Thread(target=take_part, args=pair) for pair in zip(late, fates, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.add("lost", lost(raw_entries(store), [*early, *late]))
    repair_aliases(PromotionLog(store), registry, registry.model)
    found.add("unrepaired", _wrong_aliases(store, registry))
    for promoter in late:
        if promoter.end == "crashed" and promoter.action in ("promote", "approve"):
            promoter.died = True
            promoter.run(store, registry)
    entries = raw_entries(store)
    found.add("lost", lost(entries, [*early, *late]))
    keys = Counter(registry.run_keys())
    found.add("unrepaired", [f"{key} has {n} versions" for key, n in keys.items() if n > 1])
    found.add("unrepaired", [f"{e['run_key']} has none" for e in entries if not keys[e["run_key"]]])
    found.add("unrepaired", _wrong_aliases(store, registry))
    found.figures.update(
        promoters=len(late), crashes=sum(fate.dead for fate in fates), entries=len(entries)
    )
    return found


def _fate(chance: random.Random) -> Fate:
    own = random.Random(chance.random())
    if chance.random() < 0.4:
        return Fate(own)
    return Fate(own, die_at=chance.randint(1, _WRITES), after=chance.random() < 0.5)


def _wrong_aliases(store: ObjectStore, registry: Any) -> list[str]:
    present, wanted = registry.aliases(registry.model), wanted_aliases(raw_entries(store))
    return [] if present == wanted else [f"the aliases are {present}, not {wanted}"]


def _memory() -> Registries:
    memory = Memory()
    return lambda fate: MemoryRegistry(memory, fate)


def _mlflow(file: Path, model: str) -> Registries:
    uri = f"sqlite:///{file}"
    client = connect(uri)
    client.create_registered_model(model)
    return lambda fate: MlflowRegistry(uri, client, model, fate)


def _s3_stores(server: S3Server) -> Stores:
    with _environment(server.environment):
        client = S3Store(bucket=BUCKET)._client
    return lambda: S3Store(bucket=BUCKET, prefix=uuid.uuid4().hex, client=client)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main() -> int:
    """Print the figures; 0 if nothing was lost and everything mended."""
    parser = argparse.ArgumentParser(description="Race for one champion, with crashes.")
    parser.add_argument("number", nargs="?", type=int, default=1000, metavar="N")
    parser.add_argument("--count", type=int, help="the same as N")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="promotions-")))
        (folder / "weed").mkdir()
        s3 = stack.enter_context(s3_running(folder / "weed"))
        figures = prove(arguments.count or arguments.number, folder, s3=s3)
    tell("promotions", figures)
    return 0 if not figures["lost"] and not figures["unrepaired"] else 1


if __name__ == "__main__":
    sys.exit(main())
