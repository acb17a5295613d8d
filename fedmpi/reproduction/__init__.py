"""Published figures against runs: cells, judgements, verdicts, and the document that says them."""
