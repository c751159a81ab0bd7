"""Values of requests: types of fields, weights, filters and the options of strategies."""
