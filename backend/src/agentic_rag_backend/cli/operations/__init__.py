"""Commands that run and maintain a deployment, in its own processes."""
