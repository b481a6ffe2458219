"""Prove that a snapshot is fit to train on; stop the run where it is not."""
