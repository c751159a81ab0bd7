"""OpenAI's protocol at `/openai/v1`: chat completions, models and embeddings."""
