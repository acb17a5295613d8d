"""Who averages with whom: the server, or graphs of clients (imports without torch)."""
