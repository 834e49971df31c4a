"""The page: a server on loopback that shows every project of the user and takes a person's decisions."""
