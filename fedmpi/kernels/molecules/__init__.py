"""FedGraphNN's molecule models compiled: a whole local epoch is one call."""
