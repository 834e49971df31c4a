"""Gates: gather facts and run checks."""
