"""Doors: other protocols through which programs search and ask. They call the application, as the product's own API does."""
