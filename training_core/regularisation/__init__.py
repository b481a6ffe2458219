"""What keeps a network from learning its train split by heart: labels, examples, layers."""
