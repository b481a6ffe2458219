"""The contestants: one file a trainer, each with `train(run)`."""
