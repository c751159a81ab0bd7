"""What a request may say and what it leaves open: filters, options, weights and defaults."""
