"""Follow-up questions: make a question self-contained from the earlier turns of its conversation."""
