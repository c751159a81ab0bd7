"""One module a strategy; `retrieval.registry` names them."""
