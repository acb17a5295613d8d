"""The record of a run: HDF5 file, event log, checkpoint, folder lock, provenance."""
