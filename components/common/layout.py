"""Where things lie in the object store, and where the home folder is.

objects/<sha256>                 content: splits, predictions, package files
snapshots/<digest>.parquet       one manifest per snapshot, immutable
snapshots/latest.json            which of them is the last
profiles/<run key>.json          which profile and sample belong to a validated snapshot
profiles/last.json               the run key that was validated last
runs/<run>/<step>.json           what each step did in a run; run.json, report.html, data.html
                                 and alerted.json beside
runs/<run>/model_card.md         what the version is that the run registered
keys/<run key>/<step>.json       the latest finished record of a step for this key
keys/<run key>/refit.json        what became of its refit, or how often that was begun
keys/<run key>/start.json        what its training begins with, where settings ask for a start
keys/<run key>/teacher.json      whom it learns from, where settings ask for a teacher
keys/<run key>/finished.json     written when a run with this key has reached its decision
splits/<run key>.json            content hashes of the parts that split_data made
tune/<study>/...                 a search of settings: its journal, lease, page and patch
checkpoints/<run key>/...        training state (training_core.checkpoints); result.json beside it
                                 once training has come to its end
jobs/<run key>/<number>/...      what nodes of one training are told, and say
                                 (train_distributed/shared_job.py)
spools/<run key>.<instant>.jsonl figures that MLflow has not got, of trainings whose pods may go
checks.html                      the page of the last `evertrain check --page`
profile/                         pages of the last `evertrain profile`, `lr` and `batch-size`, and
                                 the profile's trace for Perfetto
lease.json                       which run is under way (infra/lease.py); never deleted
promotions/<number>.json         the promotion log: the truth about the champion
questions/<number>.json          the ledger: which holdout rows were asked for which decision
ends.json                        by outcome, the last run that ended so
watch/cursor.json                what the watchers know together: what waits, what is under way
watch/versions/<version>         marks of the objects that new ones are counted from
watch/runs/<name>.json           a run that a watcher started on its own machine, and that it lives
starts/<key>.json                what became of an order of a watcher: one object a data version
noise/<digest>/<run key>.json    what replicas of a training differed by, for these settings
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from components.common.project import Project
from infra.store import ObjectStore, open_store


def home(project: Project) -> Path:
    """The folder for local state: EVERTRAIN_HOME, else `.evertrain` in the project."""
    named = os.environ.get("EVERTRAIN_HOME", "")
    return Path(named).expanduser().absolute() if named else project.folder / ".evertrain"


def project_store(project: Project, uri: str = "") -> ObjectStore:
    """Open the object store: `uri`, else the setting, EVERTRAIN_STORE, the home folder."""
    chosen = uri or project.settings.store or os.environ.get("EVERTRAIN_STORE", "")
    return open_store(chosen or home(project) / "store")


def tracking_uri(project: Project) -> str:
    """Where MLflow is: the setting, MLFLOW_TRACKING_URI, else SQLite in the home folder."""
    from infra.tracking import default_uri

    return project.settings.tracking.uri or default_uri(home(project))


def location(store: ObjectStore, key: str) -> str:
    """Where a person finds an object: a path, or a URI."""
    return f"{store.uri.rstrip('/')}/{key}" if "://" in store.uri else str(Path(store.uri) / key)


def object_key(sha256: str) -> str:
    return f"objects/{sha256}"


def record_key(run: str, step: str) -> str:
    return f"runs/{run}/{step}.json"


def alerted_key(run: str) -> str:
    return f"runs/{run}/alerted.json"


def card_key(run: str) -> str:
    return f"runs/{run}/model_card.md"


def key_record(run_key: str, step: str) -> str:
    return f"keys/{run_key}/{step}.json"


def start_key(run_key: str) -> str:
    return f"keys/{run_key}/start.json"


def refit_key(run_key: str) -> str:
    return f"keys/{run_key}/refit.json"


def teacher_key(run_key: str) -> str:
    return f"keys/{run_key}/teacher.json"


def finished_key(run_key: str) -> str:
    return f"keys/{run_key}/finished.json"


def splits_key(run_key: str) -> str:
    """Where the manifest of a run's parts lies."""
    return f"splits/{run_key}.json"


def checkpoint_prefix(run_key: str) -> str:
    """Where a training's checkpoints lie."""
    return f"checkpoints/{run_key}"


def jobs_prefix(run_key: str) -> str:
    """Where what nodes of one training are told lies, attempt by attempt."""
    return f"jobs/{run_key}"


def sha256_of(path: Path) -> str:
    """Content hash of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_bytes(content: bytes) -> str:
    """Content hash of what is in memory."""
    return hashlib.sha256(content).hexdigest()


def hashes_of(folder: Path) -> dict[str, str]:
    """Content hash of each file of a package, by name."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.is_file()}


def digest_of(value: Any) -> str:
    """Hash of plain data: sorted keys, no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def put_object(store: ObjectStore, path: Path) -> str:
    """Store a file under its content hash (once) and return the hash."""
    sha256 = sha256_of(path)
    if store.info(object_key(sha256)) is None:
        store.put_file(object_key(sha256), path)
    return sha256


def fetch_object(store: ObjectStore, sha256: str, cache: Path, *, key: str = "") -> Path:
    """Return a local copy of an object, its content checked against its hash.

    Args:
        store: Where it is.
        sha256: What its content must hash to.
        cache: Folder of local copies, shared by all steps on this machine.
        key: Where it lies if not under its hash.

    Raises:
        ObjectDamaged: The content does not match.
    """
    from components.common.cache import Cache
    from infra.errors import ObjectDamaged

    copies, where = Cache(cache), key or object_key(sha256)
    copies.need([sha256])
    if copies.has(sha256):
        return copies.place(sha256)
    temporary = copies.reading()
    try:
        store.get_file(where, temporary)
        if sha256_of(temporary) != sha256:
            raise ObjectDamaged(
                f"{where} in {store.uri} does not hold what was recorded "
                f"(expected sha256 {sha256[:12]}…)",
                hint="it was changed or damaged since; start a new run to take a new snapshot",
            )
        return copies.add(sha256, temporary)
    finally:
        temporary.unlink(missing_ok=True)
