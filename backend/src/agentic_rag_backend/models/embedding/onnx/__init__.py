"""Encoders as ONNX models: their graphs, the rewriting of them, and their sessions."""
