"""How much graphs and datasets differ: the statistics of the papers' analyses, and leakage between splits."""
