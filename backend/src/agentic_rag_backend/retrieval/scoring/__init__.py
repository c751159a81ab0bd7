"""Plain functions from scores to scores: fusing lists, coverage of a question's words, relevance."""
