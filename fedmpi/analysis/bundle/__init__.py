"""Result bundles: a suite's records with all that somebody else needs to check and use them."""
