"""The command line; each command's work is imported when it is called."""
