"""What a training run does: its steps, the waits for batches, memory, the machine, and what is wrong with them."""
