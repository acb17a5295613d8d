"""What a machine with a GPU is tested and measured by, in parts that are processes of their own."""
