"""Other wordings of a question: by a language model, or by other names of its entities."""
