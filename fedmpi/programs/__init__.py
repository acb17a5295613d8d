"""How the hooks and programs of an algorithm are called and checked."""
