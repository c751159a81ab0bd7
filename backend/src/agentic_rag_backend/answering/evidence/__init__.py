"""The evidence of an answer: numbered passages and themes, within a budget of tokens."""
