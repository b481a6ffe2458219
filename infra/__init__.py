"""Adapters to the world outside: object store, experiment tracking, model registry."""
