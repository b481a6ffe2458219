"""Register the model and make it champion, if the verdict says so and nothing moved meanwhile."""
