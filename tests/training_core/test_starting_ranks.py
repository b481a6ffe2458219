"""Ranks that fail or hang are told of with their tracebacks, and none is left running."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch.distributed
from ranks import start_ranks


def note(folder: Path) -> None:
    """Leave this process's number, once all ranks have met."""
    torch.distributed.init_process_group("gloo")
    (folder / os.environ["RANK"]).write_text(str(os.getpid()))
    torch.distributed.barrier()


def fail(folder: Path) -> None:
    note(folder)
    if os.environ["RANK"] == "1":
        raise MemoryError("the dog ate it")
    torch.distributed.barrier()


def hang(folder: Path) -> None:
    note(folder)
    while True:
        time.sleep(0.1)


def some_still_run(folder: Path) -> bool:
    numbers = [file.read_text() for file in folder.iterdir()]
    assert len(numbers) == 2
    return any(Path("/proc", number).exists() for number in numbers)


def test_a_rank_that_fails_says_why_and_the_others_end(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        start_ranks(2, fail, tmp_path)
    said = str(raised.value)
    assert "Traceback" in said
    assert "in fail" in said
    assert "MemoryError: the dog ate it" in said
    assert not some_still_run(tmp_path)


def test_ranks_that_hang_are_ended_and_say_where_they_were(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        start_ranks(2, hang, tmp_path, patience=5)
    said = str(raised.value)
    assert said.count("in hang") == 2
    assert "Timeout" in said
    assert not some_still_run(tmp_path)
