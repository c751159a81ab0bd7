"""Stages that every search passes, whatever its strategy: `pipeline` lists them."""
