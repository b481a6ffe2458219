"""Prove that the training code is sane before the long run."""
