"""Train the simple models that the network has to beat."""
