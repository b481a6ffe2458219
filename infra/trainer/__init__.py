"""Kubeflow Trainer: `api` (the stock client, with patience), `request`, `jobs`, `state`, `logs`."""
