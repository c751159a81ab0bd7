"""HTTP API. Each endpoint parses its request, calls a service and returns a response. `app.create_app` builds the application."""
