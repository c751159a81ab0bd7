"""Contract of the catalogue: checks for each port, which every adapter runs."""
