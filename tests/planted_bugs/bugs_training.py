"""Bugs in the training's own code: a line of it is another one."""

from __future__ import annotations

from tests.planted_bugs import (
    healthy_arrows,
    healthy_averaged,
    healthy_multilabel,
    healthy_regression,
    healthy_residual,
    healthy_sgd,
    healthy_tiny,
)
from tests.planted_bugs.planting import Theme, changed
from training_core.backward import Shares
from training_core.checkpoints.live import LiveState
from training_core.evaluation import evaluate
from training_core.feeds.batches import Sharing
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.steps import stretches
from training_core.loop import Trainer
from training_core.optim.groups import by_decay
from training_core.optim.schedules import Schedule
from training_core.optim.update import Update
from training_core.parallel.ddp import DataParallel
from training_core.parallel.group import ProcessGroup
from training_core.state import State

TRAINING = Theme("Loop, optimiser, schedule")
ORDER = Theme("Order of samples, ranks, checkpoints")
SGD, TABLE = healthy_sgd.HEALTHY, healthy_regression.HEALTHY
PLAIN = ("steps_equal_plain_code",)

TRAINING.code(
    "gradients_never_zeroed",
    TABLE,
    "Gradients are not zeroed between steps: they add up.",
    (Update._zero, "if self._flat is not None:", "return\n    if self._flat is not None:"),
    found_by=PLAIN,
    seen="Karpathy 2018: you forgot to .zero_grad() before .backward()",
)
TRAINING.code(
    "gradients_scaled_twice",
    SGD,
    "The loss is divided by the batch twice.",
    (Shares.of, "/ (units or 1.0)", "/ (units or 1.0) ** 2"),
    found_by=PLAIN,
    seen="Jiang et al. 2025, TrainCheck",
)
TRAINING.code(
    "accumulation_not_divided",
    SGD,
    "With accumulation each microbatch's mean is added: four of them make four times the step.",
    (Shares.of, "(units or 1.0)", "len(losses)"),
    found_by=PLAIN,
    seen="gradient accumulation in Hugging Face Transformers before October 2024",
    training={"accumulation": 4},
)
TRAINING.code(
    "gradients_never_clipped",
    healthy_averaged.HEALTHY,
    "The norm is computed and the gradients are not scaled down to it.",
    (Update._step_on_host, "if divisor != 1:", "if divisor != 1 and divisor < 0:"),
    found_by=PLAIN,
    seen="Jiang et al. 2025, TrainCheck",
    training=changed(healthy_averaged.HEALTHY, optimiser={"name": "sgd", "lr": 0.05}),
)
TRAINING.code(
    "parameters_not_in_the_optimiser",
    healthy_multilabel.HEALTHY,
    "The optimiser gets all parameters but those of the first layer.",
    (by_decay, "in model.parameters() if p.requires_grad]", "in [*model.parameters()][2:]]"),
    found_by=("parameters_train", *PLAIN),
    seen="Jiang et al. 2025, TrainCheck: an optimiser of parameters that the model no longer has",
)
TRAINING.code(
    "everything_decays",
    healthy_residual.HEALTHY,
    "Weight decay is 1.0, and norms and biases decay as matrices do.",
    (
        by_decay,
        "[p for p in trained if id(p) not in exempt], [p for p in trained if id(p) in exempt]",
        "trained, []",
    ),
    found_by=("parameters_train", "update_health", "loss_falls", *PLAIN),
    seen="Humbatova et al. 2020, wrong regularisation",
    training=changed(healthy_residual.HEALTHY, optimiser={"weight_decay": 1.0}),
)
TRAINING.code(
    "rate_never_set",
    TABLE,
    "The schedule is made and nobody asks it: the rate stays at its peak.",
    (Update.set_rate, 'group["lr"] = rate.lr * part.lr_factor', "pass"),
    found_by=("schedule_as_planned", *PLAIN),
    seen="PyTorch: scheduler.step() forgotten",
)
TRAINING.code(
    "schedule_of_another_data_set",
    healthy_tiny.HEALTHY,
    "The schedule is that of ten times as many steps: the rate hardly falls.",
    (
        Trainer.__init__,
        "schedule_of(settings, steps=self.total_steps",
        "schedule_of(settings, steps=10 * self.total_steps",
    ),
    found_by=("schedule_as_planned",),
    seen="Karpathy 2019: a decay schedule of ImageNet on another data set",
)
TRAINING.code(
    "warm_up_beyond_the_end",
    TABLE,
    "The warm-up is longer than the run: the rate never arrives at its peak.",
    (Schedule.__init__, "settings.warmup * steps", "settings.warmup * steps * 40"),
    found_by=("schedule_as_planned",),
    seen="Karpathy 2019, learning rate schedules",
)
TRAINING.code(
    "evaluation_of_the_first_piece",
    SGD,
    "Evaluation looks at its first rows again and again.",
    (evaluate, "start = piece * rows if counts else 0", "start = 0"),
    found_by=("evaluation_equals_plain_code",),
)

ORDER.code(
    "epoch_never_set",
    SGD,
    "Every epoch has the same order: the sampler is not told of a new one.",
    (MemoryFeed._reader, "epoch=epoch, count", "epoch=0, count"),
    found_by=("samples_in_order",),
    seen="PyTorch: DistributedSampler.set_epoch, in its documentation's warning",
)
ORDER.code(
    "never_shuffled",
    healthy_arrows.HEALTHY,
    "Rows are sorted by label and come in their own order.",
    (
        MemoryFeed._reader,
        "permutation(seed=seed, epoch=epoch, count=len(self)).numpy()",
        "np.arange(len(self))",
    ),
    found_by=("samples_in_order",),
    seen="Karpathy 2019; Humbatova et al. 2020, data not shuffled",
)
ORDER.code(
    "ends_of_epochs_dropped",
    TABLE,
    "An epoch's short last step is dropped, so some rows are left out of each.",
    (stretches, "steps, size = 1, left", "samples += left\n            continue"),
    found_by=("samples_in_order",),
    seen="drop_last=True of a DataLoader",
)
ORDER.code(
    "same_rows_on_each_rank",
    SGD,
    "Every rank reads the first rank's part of each step.",
    (Sharing.of, "rank * microbatches, (rank + 1) * microbatches", "microbatches"),
    found_by=("ranks_agree", "samples_in_order"),
    seen="Jiang et al. 2025, TrainCheck; a DataLoader without DistributedSampler",
)
ORDER.code(
    "gradients_not_summed_over_ranks",
    SGD,
    "Ranks never exchange their gradients: each trains a model of its own.",
    (DataParallel.microbatch, "nullcontext() if last else model.no_sync()", "model.no_sync()"),
    found_by=("ranks_agree",),
    seen="PyTorch: a model called past its DistributedDataParallel",
)
ORDER.code(
    "clipped_on_the_first_rank_only",
    healthy_averaged.HEALTHY,
    "Gradients are clipped on the first rank only: the ranks' weights drift apart.",
    (Update._step_on_host, "if divisor != 1:", "if divisor != 1 and self._strategy.rank == 0:"),
    found_by=("ranks_agree",),
    seen="DeepSpeed issue 1801, in the training of BLOOM-176B (Jiang et al. 2025)",
    training=changed(healthy_averaged.HEALTHY, optimiser={"name": "sgd", "lr": 0.05}),
)
ORDER.code(
    "averaged_where_summed_was_meant",
    SGD,
    "Gradients are divided by the global batch, and then averaged over the ranks.",
    (Shares.of, "self._factor", "1.0"),
    found_by=("ranks_agree",),
)
ORDER.code(
    "statistics_never_pooled",
    SGD,
    "Each rank keeps BatchNorm's statistics of its own rows; the first one's are saved.",
    (ProcessGroup.synchronise_statistics, "if statistics:", "if False:"),
    found_by=("ranks_agree",),
    seen="Humbatova et al. 2020; torch's SyncBatchNorm exists for it",
)
ORDER.code(
    "moments_not_saved",
    TABLE,
    "The optimiser's moments are not in the checkpoint: a resumed run begins with none.",
    (LiveState.refresh, 'if name.startswith("state."):', 'if name.startswith("nothing."):'),
    found_by=("checkpoint_equals_itself",),
    seen="Islam et al. 2019, A comprehensive study on deep learning bug characteristics",
)
ORDER.code(
    "scaler_not_restored",
    healthy_averaged.HEALTHY,
    "A resumed run begins with another loss scale than the one it had.",
    (State._load, 'trainer.precision.scaler.load_state_dict(progress["scaler"])', "pass"),
    found_by=("checkpoint_equals_itself",),
    seen="PyTorch's AMP recipe: save the scaler with the model",
    training={"precision": "fp16"},
)
ORDER.code(
    "random_states_not_restored",
    healthy_residual.HEALTHY,
    "A resumed run draws other dropout than the undisturbed one.",
    (State._restore_own, "set_random_states(own, trainer.strategy.device)", "pass"),
    found_by=("checkpoint_equals_itself",),
)
