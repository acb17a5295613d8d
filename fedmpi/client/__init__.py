"""How a client trains and is evaluated: its data, passes, optimizer, memory, and the verbs of its program."""
