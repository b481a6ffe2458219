"""Optimisers, schedules, clipping and the update of the weights."""
