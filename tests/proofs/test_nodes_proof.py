"""Two hosts in the short form: one of them dies while DDP trains, and one while FSDP does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.hosts import open_hosts
from tests.proofs.nodes import KINDS, Pair, holds
from tests.proofs.nodes_outcome import rounds_of

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
def test_two_hosts_that_lose_each_other_end_as_if_nothing_had_happened(tmp_path: Path) -> None:
    ddp, fsdp = KINDS[:2]
    with open_hosts(2) as hosts:
        pair = Pair(tmp_path, hosts, seed=1)
        pair.trial(0, ddp, blows=1, ways=("host",))
        pair.trial(1, fsdp, blows=1, ways=("host",))
    assert pair.figures["kills"] == 2
    assert pair.figures["promised"] == 2
    assert holds(pair.figures), pair.figures
    for trial in (0, 1):
        ranks = {len(files) for files in rounds_of(tmp_path / "seen" / f"trial-{trial}")}
        assert ranks == {2}, "both hosts trained in every round"
