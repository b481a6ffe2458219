"""Training that does not begin at random weights: where it starts, what of it moves, how fast."""
