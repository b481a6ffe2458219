"""Compose the run's record and its report from what the steps left, and tell who asked for it."""
