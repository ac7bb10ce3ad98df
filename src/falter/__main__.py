"""`python -m falter`."""

from falter.cli import main

main()
