"""Memory of arrays and tensors, as native code takes it."""
