"""Where a training's time goes, and what its rate and batch size should be; nothing is kept.

`planned.py` begins the planned training as often as one likes; `profile.py` takes some of its steps
apart, `learning_rate.py` sweeps its rate, `batch_sizes.py` and `noise_scale.py` look at its batch.
"""
