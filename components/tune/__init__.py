"""The step tune: searches settings, and says what the search is worth."""
