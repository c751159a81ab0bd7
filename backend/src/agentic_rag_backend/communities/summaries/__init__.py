"""What a community says: the evidence for it, summaries without and with a model, and what of them may be shown."""
