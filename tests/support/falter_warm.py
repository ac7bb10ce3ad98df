"""What every process of falter would load or compile anew, loaded in the server that forks them."""

from falter.clients import clients
from falter.perturbations import perturb, perturbations
from falter.protocols import protocols
from falter.remedies import remedies
from falter.scorers import scorers
from falter.tasks import tasks
from falter.text.meaning import meaning_flags

for registry in (clients, perturbations, protocols, remedies, scorers, tasks):
    registry.names()
TEXT = "Which of the little houses stands nearest the old river?"
for recipe in ("pad_quotes", "typos", "persona"):
    meaning_flags(TEXT, perturb(TEXT, recipe))
