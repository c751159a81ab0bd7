"""Parts of a request: filters, options, weights and defaults."""
