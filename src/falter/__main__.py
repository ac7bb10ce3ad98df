"""The command `falter`, and `python -m falter`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it is still being loaded ends in words too."""
    try:
        from falter.cli.app import main
    except KeyboardInterrupt:
        sys.exit("error: Interrupted")
    main()


if __name__ == "__main__":
    main()
