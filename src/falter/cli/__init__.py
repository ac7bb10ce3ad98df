"""Floor 7: the command line. Data goes to stdout, talk to stderr."""
