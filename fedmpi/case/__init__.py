"""A case: what one run is, checked and complete, and the folder that it writes."""
