"""Which client holds which graphs, and how each client's graphs split into training, validation and test."""
