"""Replies of language models: repaired, fitted to a schema, and separated from reasoning and repetition."""
