"""Choose among the checkpoints after the fact, and package the chosen one."""
