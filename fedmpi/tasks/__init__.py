"""What is predicted of each example and how that is judged: one file per task (imports without torch)."""
