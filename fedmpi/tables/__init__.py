"""One table with columns and rows, and its writers: terminal, LaTeX, Markdown, HTML, CSV."""
