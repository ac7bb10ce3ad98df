"""The property suite over the whole registry: a new perturbation is tested once registered."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from falter.perturbations import perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.records.types import Prompt, Section
from falter.testing.properties import check_perturbation, check_prompt

NAMES = [p.name for p in perturbations if not isinstance(p, SettingPerturbation)]
TEXTS = st.text(
    st.one_of(
        st.sampled_from("the cat's not 3 x^2 - A, B. (of) {y} $5 \n\t`_/<>"),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=120,
)


@pytest.mark.parametrize("name", NAMES)
def test_keeps_its_promises(name: str) -> None:
    """Every registered perturbation passes the property suite, alone and in chains."""
    others = [p for p in perturbations if p.name != name and p.name in {"typos", "space_sequences"}]
    check_perturbation(perturbations.get(name), others=others)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(text=TEXTS)
def test_survives_any_text(name: str, text: str) -> None:
    """Any Unicode text goes through every check."""
    sections = (
        Section(name="input", kind="input", text=text),
        Section(name="cue", kind="cue", text="\nAnswer:"),
    )
    check_prompt(perturbations.get(name), Prompt(sections=sections))
