"""The part of a tenant's knowledge that may be shown now: only what visible versions of documents support."""
