"""Certificates are loaded for https only, and always verified."""

from __future__ import annotations

import ssl

import pytest

from agentic_rag_backend.cli.session.remote import _choose_tls


@pytest.mark.parametrize(("url", "loaded"), [("https://rag.example.org", True), ("http://127.0.0.1:8000", False)])
def test_certificates_are_loaded_for_https_only(url: str, loaded: bool) -> None:
    context = _choose_tls(url)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert bool(context.cert_store_stats()["x509_ca"]) is loaded
