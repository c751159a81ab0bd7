"""Commands that run and maintain a deployment."""
