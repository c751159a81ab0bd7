"""Rule-based analysis of text: words, sentences, statements, and the kind of answer that a question asks for."""
