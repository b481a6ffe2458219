"""Sanity checks of training code: silent bugs found before the long run."""
