"""When a training ends: its rules, and what it does about divergence."""
