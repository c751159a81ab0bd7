"""From a request to a `Query`: filters, options, weights, and the defaults of what a request leaves open."""
