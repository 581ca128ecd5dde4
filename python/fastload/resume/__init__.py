"""Resuming: where a run is, and how it goes on from there."""
