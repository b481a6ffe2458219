"""Take a snapshot of the data: what is there, hashed, under one digest."""
