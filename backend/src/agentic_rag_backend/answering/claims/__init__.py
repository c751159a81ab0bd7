"""Claims of a model: reading them, and checking them against passages."""
