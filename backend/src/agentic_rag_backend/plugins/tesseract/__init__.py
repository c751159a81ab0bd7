"""Recognition of text in pictures by the program Tesseract."""
