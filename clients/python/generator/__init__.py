"""Generator of the modules that follow the OpenAPI description."""
