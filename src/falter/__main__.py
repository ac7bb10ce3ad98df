"""`python -m falter`."""

from falter.cli._main import main

main()
