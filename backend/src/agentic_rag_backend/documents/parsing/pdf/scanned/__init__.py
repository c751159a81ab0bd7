"""Pages that are pictures: their recognition, and the words that it gives."""
