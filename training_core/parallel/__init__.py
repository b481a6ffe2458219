"""How the processes of one training work together: one small file a strategy."""
