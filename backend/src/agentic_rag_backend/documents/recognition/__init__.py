"""Recognition of text in pictures (OCR) by the program Tesseract, where it is installed.

``base`` is the port, which parsers call. ``tesseract`` runs the program for one document, in the process that reads the document;
``exchange`` bounds its time and output, and ``tsv`` reads its output. ``installation`` finds the program in the serving process.
"""
