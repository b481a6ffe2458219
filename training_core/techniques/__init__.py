"""What a training may do beside the plain loop, each in a file of its own (`contract.py`)."""
