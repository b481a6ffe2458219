"""Checkpoints: copied while training goes on, verified, and there only when their manifest is."""
