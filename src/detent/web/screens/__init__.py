"""The answers of the page's server, one module a screen. They are made of the engine and `render`; no rule is here."""
