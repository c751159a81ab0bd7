"""Words of a language by class: function words, kinds of things, opposites."""
