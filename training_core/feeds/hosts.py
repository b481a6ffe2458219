"""Files shared out among hosts, for data that no host holds whole.

The files are dealt to a fixed number of shards. Each shard has an order of its own, and the global
order draws from all shards at an even pace (`order.Interleaving`); neither knows the hosts. Host h
of H holds the shards s with s % H == h, and its ranks divide what a step draws from them. So a run
goes on with another number of hosts without losing or repeating a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.batches import Sharing, StepBatch
from training_core.feeds.blocks import BlockFeed, BlockReader
from training_core.feeds.chunks import ChunkedFeed, batches, steps_at_once
from training_core.feeds.order import Integers, Interleaving, mixed_seed
from training_core.feeds.rows import Buffers, columns, empty, gather
from training_core.feeds.steps import Stretch, stretches


def shard_files(files: Sequence[str], shards: int) -> list[list[str]]:
    """Deal files to shards: the same for the same names, in whatever order they are listed.

    Args:
        files: Names, all different.
        shards: How many; part of the order, so it stays when the number of hosts changes. A
            multiple of every number of hosts to come shares equally.

    Raises:
        ConfigurationError: There are fewer files than shards, or one comes twice.
    """
    if len(set(files)) < len(files):
        raise ConfigurationError(f"{len(files) - len(set(files))} of {len(files)} files come twice")
    if not 1 <= shards <= len(files):
        raise ConfigurationError(
            f"{len(files)} files cannot be dealt to {shards} shards",
            hint=f"choose between 1 and {len(files)} shards, or write more files",
        )
    ordered = sorted(files)
    return [ordered[shard::shards] for shard in range(shards)]


class HostFeed(ChunkedFeed):
    """Feeds shards of files, of which each host reads its own alone.

    How many of a step's samples lie on a host varies a little from step to step; their sum over all
    ranks is exact. Units per example are not known beyond the host, so they are refused.

    Args:
        open_shard: Opens a shard of this host; narrow windows suffice, as shards are mixed.
        lengths: Samples of every shard, on whatever host.
        host: This one, from 0.
        hosts: How many; ranks are numbered host after host, equally many on each.

    Raises:
        ConfigurationError: This host would have nothing to read, or a shard is not as long as
            `lengths` says.
    """

    def __init__(
        self,
        open_shard: Callable[[int], BlockFeed],
        *,
        lengths: Sequence[int],
        host: int,
        hosts: int,
    ) -> None:
        self._lengths, self._host, self._hosts = list(lengths), host, hosts
        own = [shard for shard in range(host, len(lengths), hosts) if lengths[shard]]
        if not own:
            raise ConfigurationError(
                f"host {host} of {hosts} has nothing to read: {len(lengths)} shards of "
                f"{sum(lengths)} samples",
                hint="make at least as many shards as hosts, none of them empty",
            )
        self._shards = {shard: open_shard(shard) for shard in own}
        for shard, feed in self._shards.items():
            if len(feed) != lengths[shard]:
                raise ConfigurationError(
                    f"shard {shard} has {len(feed)} samples, not {lengths[shard]} as announced",
                    hint="read the lengths from the same files on every host",
                )
        first = self._shards[own[0]]
        self._like = first.like
        if self._like.units is not None:
            raise ConfigurationError(
                "files shared out among hosts cannot have units: a step's sum is on other hosts",
                hint="leave units out where each example has equally many, or give every host all "
                "files and use BlockFeed",
            )
        self._spare = columns(first.first())

    def __len__(self) -> int:
        return sum(self._lengths)

    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[list[StepBatch], None, None]:
        """Yield this rank's part of every step, many steps at once (see `ChunkedFeed`).

        Raises:
            ConfigurationError: The microbatches cannot be shared equally by the hosts, or this
                rank's are not those of its host.
        """
        first_part, parts = self._own_parts(sharing)
        memory = Buffers(self._like, count=buffers, pin=pin)
        epoch = -1
        for stretch in stretches(
            count=len(self),
            batch_size=sharing.batch_size,
            samples=samples,
            most=steps_at_once(self._like, sharing),
        ):
            if stretch.epoch != epoch:
                epoch = stretch.epoch
                order = Interleaving(self._lengths, seed=sharing.seed, epoch=epoch)
                readers = self._readers(sharing.seed, epoch)
            shards, places = order.span(stretch.first, stretch.last)
            deal = _Deal.of(
                stretch,
                np.flatnonzero(shards % self._hosts == self._host),
                mine=range(sharing.mine.start - first_part, sharing.mine.stop - first_part),
                parts=parts,
            )
            examples = memory.next(int(deal.sizes.clip(1).sum()))
            self._fill(examples, readers, shards[deal.samples], places[deal.samples], deal)
            weights = [None if size else torch.zeros(1) for size in deal.sizes.tolist()]
            sizes = deal.sizes.clip(1).tolist()
            yield batches(examples, stretch, sizes=sizes, weights=weights, units=None)

    def _own_parts(self, sharing: Sharing) -> tuple[int, int]:
        """Return the first of this host's parts of a step, and how many it has."""
        parts, rest = divmod(sharing.parts, self._hosts)
        own = range(self._host * parts, (self._host + 1) * parts)
        if rest or sharing.mine.start not in own or sharing.mine[-1] not in own:
            raise ConfigurationError(
                f"microbatches {sharing.mine.start} to {sharing.mine[-1]} of {sharing.parts} are "
                f"not among those of host {self._host} of {self._hosts}",
                hint="start equally many ranks on each host, numbered host after host as torchrun "
                "does",
            )
        return own.start, parts

    def _readers(self, seed: int, epoch: int) -> dict[int, BlockReader]:
        return {
            shard: feed.reader(seed=mixed_seed(seed, shard), epoch=epoch)
            for shard, feed in self._shards.items()
        }

    def _fill(
        self,
        examples: Examples,
        readers: dict[int, BlockReader],
        shards: Integers,
        places: Integers,
        deal: _Deal,
    ) -> None:
        """Read the samples shard by shard, then lay them out part after part.

        Args:
            examples: To be filled.
            readers: By shard.
            shards: Shard of each of `deal.samples`.
            places: Its place in the order of that shard.
            deal: Which sample goes where.
        """
        scratch = columns(empty(self._like, len(shards) + 1))
        for column, spare in zip(scratch, self._spare, strict=True):
            column[-1] = spare[0]
        source = np.full(len(examples), len(shards))  # parts without a sample: the spare row
        start = 0
        for shard in np.unique(shards).tolist():
            chosen = np.flatnonzero(shards == shard)  # in the global order, so places ascend
            stop = start + len(chosen)
            readers[shard].fetch(places[chosen], [column[start:stop] for column in scratch])
            source[deal.targets[chosen]] = np.arange(start, stop)
            start = stop
        gather(scratch, source, columns(examples))


@dataclass(frozen=True, slots=True)
class _Deal:
    """Which of a stretch's samples are this rank's, and where they go.

    Attributes:
        samples: int64, ascending places in the stretch.
        targets: int64, row of each among this rank's rows, part after part and step after step.
        sizes: int64 [steps · parts of this rank], samples of each part.
    """

    samples: Integers
    targets: Integers
    sizes: Integers

    @classmethod
    def of(cls, stretch: Stretch, own: Integers, *, mine: range, parts: int) -> _Deal:
        """Deal the host's samples of each step in turn to its parts.

        Args:
            stretch: The steps.
            own: int64, ascending places in the stretch of the host's samples.
            mine: This rank's among the host's parts.
            parts: The host's parts.
        """
        steps = own // stretch.size
        firsts = np.searchsorted(steps, np.arange(stretch.steps))
        turns = np.arange(len(own)) - firsts[steps]  # counted within the step
        part = turns % parts
        kept = (part >= mine.start) & (part < mine.stop)
        samples, slot = own[kept], steps[kept] * len(mine) + part[kept] - mine.start
        sizes = np.bincount(slot, minlength=stretch.steps * len(mine))
        room = sizes.clip(1)
        starts = np.cumsum(room) - room
        return cls(samples, starts[slot] + turns[kept] // parts, sizes)
