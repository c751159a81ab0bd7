"""What a person hands in: files that paths name, rows of tables, and which of them say the same."""
