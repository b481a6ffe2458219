"""Training can return to an earlier checkpoint, and take another way from there."""

from __future__ import annotations

from pathlib import Path

from checkpoint_samples import Training, same, steps_of


def test_training_can_go_back_and_then_another_way(tmp_path: Path) -> None:
    run = Training(tmp_path)
    states = {}
    for step in (1, 2, 3):
        run.train()
        run.begin()
        states[step] = run.state()
    run.train(2)
    assert run.resume(before_step=2) == 2
    assert same(run.state(), states[2])
    run.saver.discard_after(2)
    assert steps_of(run.checkpoints) == [1, 2]
    run.optimisers[0].param_groups[0]["lr"] = 0.5
    run.train()
    run.save()
    assert steps_of(run.checkpoints) == [1, 2, 3]
    assert not same(run.state(), states[3])


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    run = Training(tmp_path)
    for step in (10, 1_000_000_000, 200, 3):
        run.steps = step
        run.save()
    assert steps_of(run.checkpoints) == [3, 10, 200, 1_000_000_000]
    assert Training(tmp_path).resume() == 1_000_000_000


def test_what_lies_ahead_of_a_training_that_went_back_does_not_cost_it_its_own(
    tmp_path: Path,
) -> None:
    run = Training(tmp_path, keep_last=3)
    for _ in range(3):
        run.train(2)
        run.save()
    again = Training(tmp_path, keep_last=1, keep_best=0)
    assert again.resume(before_step=3) == 2
    again.train()
    again.save()
    assert steps_of(again.checkpoints) == [3, 4, 6]
    again.train()
    again.save()  # where there is one already
    assert steps_of(again.checkpoints) == [4, 6]
