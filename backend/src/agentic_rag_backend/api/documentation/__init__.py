"""The OpenAPI document with its examples, and the page that shows it."""
