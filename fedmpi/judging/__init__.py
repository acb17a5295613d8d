"""What figures from a few seeds say: estimates, families of tests, verdicts, ranks."""
