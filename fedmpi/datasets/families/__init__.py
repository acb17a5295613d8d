"""The families of datasets that fedmpi brings: one file each, found by itself."""
