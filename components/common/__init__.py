"""What several steps share: the project, the store's layout, step records, the promotion log."""
