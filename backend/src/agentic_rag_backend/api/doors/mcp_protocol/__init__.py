"""The Model Context Protocol: tools with which agents search and ask a tenant, over HTTP at `/mcp` and over stdio."""
