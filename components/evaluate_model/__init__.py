"""Compare the chosen model with champion and baselines on the holdout; say promote or why not."""
