"""The agentic loop: plans, negative constraints, reflections, stop policies and budgets."""
