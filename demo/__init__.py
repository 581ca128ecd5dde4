"""One epoch over a folder of photographs, with torch's DataLoader and with fastload's: `make demo`."""
