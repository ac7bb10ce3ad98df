"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# The same examples on every machine, so that a release never depends on luck. To search further:
#     FALTER_EXPLORE=1 python -m pytest tests/test_text_relevance.py
settings.register_profile("fixed", derandomize=True, database=None)
settings.register_profile("explore", max_examples=1_000, database=None)
settings.load_profile("explore" if os.environ.get("FALTER_EXPLORE") else "fixed")
