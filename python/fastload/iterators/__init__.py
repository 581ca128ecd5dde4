"""The iterators of all lanes: each hands over the batches of an epoch."""
