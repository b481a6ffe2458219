"""Files shared out among hosts: each host reads its own, and their number can change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from feed_contract import noted, numbered

from training_core.errors import ConfigurationError
from training_core.feeds.batches import Sharing
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.hosts import HostFeed, shard_files
from training_core.feeds.npy import open_blocks, write_blocks

LENGTHS = [40, 10, 25, 5]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for shard, length in enumerate(LENGTHS):
        rows = numbered(length, first=sum(LENGTHS[:shard]))
        write_blocks(tmp_path / str(shard), [rows])
    return tmp_path


def rows_of(
    folder: Path, *, hosts: int, ranks: int, samples: int, steps: int, shards: Sequence[int]
) -> list[list[int]]:
    """Return each rank's rows, read with nothing but its host's shards there to open."""
    found = []
    for rank in range(hosts * ranks):
        host = rank // ranks

        def opened(shard: int) -> BlockFeed:
            assert shard in [s for s in shards if s % hosts == host]  # noqa: B023
            return BlockFeed([open_blocks(folder / str(shard))])

        feed = HostFeed(opened, lengths=LENGTHS, host=host, hosts=hosts)
        sharing = Sharing.of(
            batch_size=8, microbatches=2, rank=rank, world_size=hosts * ranks, seed=1
        )
        taken = islice(feed.steps(sharing, samples=samples), steps)
        found.append([row for step in taken for row in noted(step).rows])
    return found


def test_the_number_of_hosts_can_change_without_losing_or_repeating_a_sample(folder: Path) -> None:
    seen: list[int] = []
    for hosts, ranks, samples, steps in ((2, 2, 0, 3), (1, 1, 24, 2), (4, 1, 40, 5)):
        for rows in rows_of(
            folder, hosts=hosts, ranks=ranks, samples=samples, steps=steps, shards=range(4)
        ):
            seen += rows
    assert sorted(seen) == list(range(80))


def test_a_host_reads_the_rows_of_its_own_shards(folder: Path) -> None:
    ranks = rows_of(folder, hosts=2, ranks=2, samples=0, steps=10, shards=range(4))
    edges = [sum(LENGTHS[:shard]) for shard in range(5)]
    own = [
        {row for shard in (host, host + 2) for row in range(edges[shard], edges[shard + 1])}
        for host in range(2)
    ]
    assert set(ranks[0]) | set(ranks[1]) == own[0]
    assert set(ranks[2]) | set(ranks[3]) == own[1]


def test_each_shard_has_an_order_of_its_own_in_each_epoch_and_for_each_seed(folder: Path) -> None:
    for shard in range(2):
        write_blocks(folder / str(shard), [numbered(30, first=30 * shard)])
    found = set()
    for seed in range(2):
        feed = HostFeed(
            lambda shard: BlockFeed([open_blocks(folder / str(shard))]),
            lengths=[30, 30],
            host=0,
            hosts=1,
        )
        whole = Sharing.of(batch_size=60, microbatches=1, rank=0, world_size=1, seed=seed)
        for step in islice(feed.steps(whole, samples=0), 2):
            rows = noted(step).rows
            found |= {tuple(row for row in rows if row < 30)}
            found |= {tuple(row - 30 for row in rows if row >= 30)}
    assert len(found) == 8


def test_files_are_dealt_alike_in_whatever_order_they_are_listed() -> None:
    files = [f"part-{number:02}.arrow" for number in range(10)]
    dealt = shard_files(files, 4)
    assert shard_files(files[::-1], 4) == dealt
    assert sorted(file for shard in dealt for file in shard) == files
    assert [len(shard) for shard in dealt] == [3, 3, 2, 2]


@pytest.mark.parametrize(
    ("files", "shards", "words"),
    [(["a", "b"], 3, "2 files cannot be dealt to 3 shards"), (["a", "a"], 1, "come twice")],
)
def test_files_that_cannot_be_dealt_are_refused(files: list[str], shards: int, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        shard_files(files, shards)


def test_what_a_host_cannot_feed_is_refused(folder: Path) -> None:
    def opened(shard: int) -> BlockFeed:
        return BlockFeed([open_blocks(folder / str(shard))])

    with pytest.raises(ConfigurationError, match="host 4 of 5 has nothing to read"):
        HostFeed(opened, lengths=LENGTHS, host=4, hosts=5)
    with pytest.raises(ConfigurationError, match="shard 1 has 10 samples, not 11"):
        HostFeed(opened, lengths=[40, 11, 25, 5], host=1, hosts=2)
    feed = HostFeed(opened, lengths=LENGTHS, host=1, hosts=2)
    for rank, world_size in ((0, 2), (0, 1), (1, 3)):
        sharing = Sharing.of(batch_size=8, microbatches=1, rank=rank, world_size=world_size, seed=0)
        with pytest.raises(ConfigurationError, match="not among those of host 1 of 2"):
            next(feed.steps(sharing, samples=0))
    write_blocks(folder / "1", [numbered(10, units=True)])
    with pytest.raises(ConfigurationError, match="cannot have units"):
        HostFeed(opened, lengths=LENGTHS, host=1, hosts=4)
