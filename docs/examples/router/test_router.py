"""The router as a test: pytest runs one test for each recipe, and the router once for each prompt.

pytest docs/examples/router                 the first time it asks, the second time it remembers
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import router

import falter

TICKETS = falter.cases(
    "tickets.jsonl", template="{ticket}", target="queue", key="key", scorer="label"
)


@falter.robust(
    TICKETS,
    recipes=["typos:count=2", "punctuation_spaces", "drop_stop_words"],
    max_drop=10,
    max_calls=1_500,
    depends_on="prompt.txt",
)
def test_router(case: falter.Case) -> str:
    """The router finds the queue whatever happens to the ticket on its way."""
    return router.route(case.text)
