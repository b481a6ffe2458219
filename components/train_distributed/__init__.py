"""Train the network: in one process, or in several under torchrun."""
