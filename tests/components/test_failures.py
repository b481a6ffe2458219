"""Why a rank failed, from the exception to the store and back, and what a repetition would help."""

from __future__ import annotations

import json

import pytest
import torch
import torch.distributed as dist

from components.train_distributed.failures import Failure, cause_of, exit_code
from infra.errors import ObjectDamaged, OutsideError, Refused
from training_core.errors import ConfigurationError, PeerFailed, StoppedByGate, TrainingFailed

_GLOO = (
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[10.77.0.2]:2214"
)


@pytest.mark.parametrize(
    ("error", "code", "final"),
    [
        (TrainingFailed("diverged", hint="lower lr"), 1, True),
        (ConfigurationError("wrong", hint="mend it"), 2, True),
        (StoppedByGate("bad"), 1, True),
        (ValueError("of the task"), 1, True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), 1, True),
        (torch.OutOfMemoryError("CUDA out of memory"), 1, True),
        (Refused("422"), 2, True),
        (OutsideError("the store is away", hint="again"), 3, False),
        (ObjectDamaged("flipped"), 3, False),
        (PeerFailed("rank 1 failed: x"), 1, False),
        (RuntimeError(_GLOO), 3, False),
        (RuntimeError("NCCL communicator was aborted on rank 1"), 3, False),
        (dist.DistNetworkError("The client socket has failed to connect"), 3, False),
        (dist.DistStoreError("wait timeout after 60000ms"), 3, False),
        (KeyboardInterrupt(), 130, False),
    ],
)
def test_a_failure_comes_back_as_what_it_was(error: BaseException, code: int, final: bool) -> None:
    failure = Failure.from_dict(json.loads(json.dumps(Failure.of(error).to_dict())))
    again = failure.exception()
    assert exit_code(again) == code
    assert failure.final is final
    if isinstance(error, (OutsideError, TrainingFailed)):
        assert (type(again), str(again)) == (type(error), str(error))
    assert "Traceback" not in str(again)


def test_the_cause_is_what_made_the_others_fail() -> None:
    lost = Failure.of(RuntimeError(_GLOO))
    told = Failure.of(PeerFailed("rank 1 failed: the store is away"))
    asked = Failure.of(KeyboardInterrupt())
    away = Failure.of(OutsideError("the store is away"))
    raised = Failure.of(ValueError("of the task"))
    assert cause_of([lost, told, away, raised, asked]) == raised
    assert cause_of([lost, told, away]) == away
    assert cause_of([lost, asked]) == asked
    assert cause_of([lost, told]) == lost
    assert cause_of([]) is None


def test_a_failure_of_another_version_can_be_read() -> None:
    failure = Failure.from_dict({"kind": "TrainingFailed", "what": "diverged", "new": 1})
    assert str(failure.exception()) == "diverged"
    unknown = Failure.from_dict({"kind": "SomethingNew", "what": "SomethingNew: x", "rank": "3"})
    assert str(unknown.exception()).startswith("rank 3 failed: SomethingNew: x")
