"""One epoch: what hands over its batches in each lane, and how far ahead they are made."""
