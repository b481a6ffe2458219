"""The pipeline's steps: one folder each, with its KFP signature and its logic."""
