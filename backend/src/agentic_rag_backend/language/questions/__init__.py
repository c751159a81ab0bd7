"""What a question asks for, how many questions it is, and whether it wants an overview."""
