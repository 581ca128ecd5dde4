"""Runs that a monitor has recorded, for the commands that show them."""
