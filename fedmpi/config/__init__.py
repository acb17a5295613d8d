"""Suite files: TOML, a matrix of cases, overrides. Generic structure only; names are the registry's."""
