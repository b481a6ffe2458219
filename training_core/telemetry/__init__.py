"""What training costs: times of a step, memory, FLOPs, and how far the weights move."""
