"""Graph-classification datasets: TU archives, own folders, generated domains, and their node features."""
