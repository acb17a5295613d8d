"""Graph neural networks: encoder, readout and head; parameters in one flat vector."""
