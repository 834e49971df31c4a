"""The parts that go into files of a project for a client: hook settings, a block of text, whole files."""
