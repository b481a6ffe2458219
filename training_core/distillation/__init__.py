"""Learning from another model's predictions, beside the labels."""
