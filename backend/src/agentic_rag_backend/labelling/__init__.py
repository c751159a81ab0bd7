"""Labels of texts: the nearest labelled documents vote, and a language model may decide."""
