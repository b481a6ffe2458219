"""Train what is to be promoted once more, on all rows, and say whether that may be promoted."""
