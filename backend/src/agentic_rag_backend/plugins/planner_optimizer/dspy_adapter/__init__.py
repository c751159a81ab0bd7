"""DSPy on our ports: its language model, its program and its optimizers. Nothing outside of this package imports DSPy.

DSPy is in the extra `dspy`. `optimizers.load` imports it, or says how to install it.
"""
