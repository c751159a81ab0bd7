"""Documents, their chunks and pages, and previews of them."""
