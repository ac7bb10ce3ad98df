"""The command line. Results go to stdout, messages to stderr."""
