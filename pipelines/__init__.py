"""The pipeline, its compilation, and the `evertrain` command line."""
