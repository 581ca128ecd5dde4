"""The order of indices, and the keys of random draws."""
