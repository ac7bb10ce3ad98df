"""The schema of experiment files, itself checked once, ready to check many."""

from __future__ import annotations

from functools import cache

import jsonschema

from falter.engine.file_schema import schema

__all__ = ["experiment_schema"]


@cache
def experiment_schema() -> jsonschema.Draft202012Validator:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)
