"""Where batches come from, and in what order."""
