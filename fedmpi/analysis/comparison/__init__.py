"""Two or more runs, suites or systems against the first: pairs, what is alike, ratios, checks."""
