"""Responses: envelopes, pages of lists, problem details, attachments and event streams."""
