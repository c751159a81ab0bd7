"""HTTP: each endpoint parses, calls a service and returns; `app.create_app` puts them together."""
