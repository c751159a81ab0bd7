"""The first half of an ingestion: reads, cuts, embeds and extracts."""
