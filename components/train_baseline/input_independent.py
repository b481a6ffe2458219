"""The network itself, trained on inputs that say nothing."""

from __future__ import annotations

import numpy as np
import torch

from components.train_baseline.contract import ALL_KINDS, Baseline, Ground, Predictions
from training_core.checks.short_training import input_independent
from training_core.examples import Examples


class InputIndependent(Baseline):
    """What the network can learn of the labels alone; a network that uses its inputs beats it."""

    name = "input_independent"
    kinds = ALL_KINDS

    def fit(self, ground: Ground) -> Predictions:
        torch.manual_seed(ground.training.seed)
        blind = input_independent(
            ground.task,
            ground.task.build_model(ground.preprocessor),
            Examples.from_frame(ground.task, ground.preprocessor, ground.train),
            steps=ground.settings.input_independent_steps,
            training=ground.training,
        )
        outputs = ground.blind_outputs(blind)
        predicted = ground.task.predict(outputs).double().numpy()[0]
        # Rows that look all alike are all answered alike: there is no need to ask for each.
        return {
            part: np.broadcast_to(predicted, (len(rows), *predicted.shape))
            for part, rows in ground.scored.items()
        }
