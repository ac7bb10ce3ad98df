"""Entry point of the command `falter` and of `python -m falter`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a Ctrl-C during its import exits with a message, not a traceback."""
    try:
        from falter.cli.app import main
    except KeyboardInterrupt:
        sys.exit("error: Interrupted")
    main()


if __name__ == "__main__":
    main()
