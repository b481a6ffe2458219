"""Divide the rows into train, validation and holdout, and prove that they are apart."""
