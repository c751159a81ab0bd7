"""Optimization of the planner's prompt from questions with known documents.

`examples` reads the questions, `planned_search` searches with a plan and measures its recall, `trials` measures prompts within a
budget of model calls, `instructions` turns proposed text into prompts, and `service` drives the run. `dspy_adapter` is the only
package that imports DSPy, which is in the extra `dspy`.
"""
