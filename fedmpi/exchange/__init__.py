"""What travels in a round, and what becomes of an update: messages, compression, sums, privacy."""
