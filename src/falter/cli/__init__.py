"""The command line. Data goes to stdout, talk to stderr."""
