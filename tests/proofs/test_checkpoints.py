"""The proof of damaged checkpoints in its short form."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.checkpoints import prove


def test_every_damage_is_noticed_and_the_checkpoint_before_is_used(tmp_path: Path) -> None:
    assert prove(40, tmp_path) == {"damaged": 40, "noticed": 40, "recovered": 40}
