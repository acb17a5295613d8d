"""The clients' devices on the virtual clock: speed, link, and when they are there."""
