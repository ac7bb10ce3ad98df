"""Names become objects, once. What can be known before the first call is checked here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter import __version__
from falter.engine.chats import require_fit_chat
from falter.engine.conditions import conditions, hold_out
from falter.engine.config import Experiment, ModelSpec, identity_settings
from falter.engine.connections import connect_all, connect_judge, require_batches
from falter.engine.recipes import recipes_of, remedy_of
from falter.engine.scoring import (
    constrains,
    reads_labels,
    reply_tokens,
    require_fit,
    require_fit_remedy,
    require_label_scorer,
    require_readable,
    require_targets,
    scorer_reason,
    task_labels,
    task_scorers,
    template_for,
    with_labels,
    with_reasoning,
)
from falter.engine.task_loading import load_tasks
from falter.records.codec import to_json
from falter.records.errors import DuplicateName, UsageError, refusal
from falter.records.interfaces import Client, ConstrainedScorer, RewriteBank, Scorer
from falter.records.planning import Asked, Condition, Target, count_cells, plan
from falter.records.types import (
    Asking,
    Item,
    Panel,
    Recipe,
    Request,
    Run,
    Sampling,
    Way,
)
from falter.rewrites.bank import Needs, ledger_for, needs_from
from falter.scorers.reading.reading import READER_VERSION
from falter.tasks.rows import source_name
from falter.tasks.task import Task

REASONING_LIMIT = 4096
"""The longest answer, in tokens, of a model that is asked to think, unless the user sets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPlan:
    """A panel with what is needed to run it.

    Where a budget leaves cells out, `asked` are those it keeps, of `available` items.
    """

    panel: Panel
    task: Task
    items: tuple[Item, ...]
    conditions: tuple[Condition, ...]
    target: Target
    client: Client
    concurrency: int
    because: str = ""
    thinks: bool = False
    asked: Asked | None = None
    available: int = 0

    def requests(self, draws: int, repeats: int = 1, items: int | None = None) -> Iterator[Request]:
        """Everything that is asked, in order; of the first `items`, where given."""
        return plan(
            self.items[:items],
            self.conditions,
            self.target,
            draws=draws,
            repeats=repeats,
            asked=self.asked,
        )

    def cells(self, draws: int, repeats: int) -> int:
        """Return the number of these requests."""
        return count_cells(len(self.items), self.conditions, draws, repeats, self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An experiment with every name turned into an object."""

    experiment: Experiment
    run: Run
    panels: tuple[PanelPlan, ...]
    scorers: Mapping[str, Scorer]
    rewrites: Needs | None = None

    @property
    def clients(self) -> list[Client]:
        return list({id(p.client): p.client for p in self.panels}.values())


def resolve(
    experiment: Experiment,
    bank: RewriteBank | None = None,
    *,
    loaded: Sequence[Task] | None = None,
    clients: Sequence[Client] | None = None,
    recipes: tuple[Recipe, ...] | None = None,
) -> Resolved:
    """Turn names into objects, or raise with the name that does not fit. Sends nothing.

    `bank` holds the rewrites of perturbations that a model makes. The `rewrites` of the result say
    what it lacks; such a result can be counted but not run. Tasks, clients (one for each model)
    and recipes can be passed in where they exist already.
    """
    recipes = recipes_of(experiment) if recipes is None else recipes
    distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    if not experiment.models:
        raise refusal(UsageError, "engine.no_model")
    require_fit_remedy(experiment, recipes)
    loaded = load_tasks(experiment) if loaded is None else loaded
    labels = {task.name: task_labels(experiment, task) for task in loaded}
    ready = connect_all(experiment) if clients is None else clients
    connected = list(zip(experiment.models, ready, strict=True))
    distinct([client.model.id for _, client in connected], [s.name for s in experiment.models])
    ledger = ledger_for(recipes, bank)
    panels: list[PanelPlan] = []
    by_name: dict[str, Scorer] = {}
    made: dict[tuple[int, int], tuple[Condition, ...]] = {}  # for all that are asked alike
    for n, task in enumerate(loaded):
        held_out, items = hold_out(task, experiment, recipes)
        for spec, client in connected:
            used = tuple(
                with_reasoning(with_labels(scorer, labels), {"remedy": experiment.remedy})
                for scorer in task_scorers(experiment, loaded, n, spec, client.capabilities)
            )
            for scorer in used:
                require_fit_chat(experiment, task, scorer, spec, client.capabilities, recipes)
                require_fit(scorer, spec, task, client.capabilities, recipes)
                if experiment.batch:
                    require_batches(spec, client, scorer)
                require_targets(scorer, task, items)
                require_readable(experiment, scorer)
                by_name[scorer.name] = scorer
                way = n, id(template_for(task, scorer))
                if way not in made:
                    made[way] = conditions(experiment, task, scorer, recipes, held_out, ledger)
                panels.append(
                    PanelPlan(
                        panel=Panel(
                            task=task.name,
                            revision=task.revision,
                            model=client.model,
                            scorer=scorer.name,
                        ),
                        task=task,
                        items=items,
                        conditions=made[way],
                        target=_target(experiment, task, spec, client, scorer, used),
                        client=client,
                        concurrency=spec.concurrency or 64,
                        because=scorer_reason(experiment, loaded, n, spec, scorer),
                        thinks=_thinks(experiment, client),
                    )
                )
    require_label_scorer(experiment, by_name.values())
    needs = None
    if ledger is not None:  # the same for all models that are asked in the same way
        sets = {id(p.conditions): (p.items, p.conditions, experiment.draws) for p in panels}
        needs = needs_from(ledger, sets.values(), asks=experiment.rewriter is not None)
    with_labels_of = {p.panel.task for p in panels if reads_labels(by_name[p.panel.scorer])}
    run = Run(
        experiment=identity_settings(experiment)
        | ({"rewrites": needs.fingerprint} if needs else {})
        | ({"labels": {task: list(labels[task]) for task in sorted(with_labels_of)}}
           if with_labels_of else {})
        | ({} if all(scorer.needs_scores for scorer in by_name.values())
           else {"reader_version": READER_VERSION})
        | ({} if experiment.reader is None else
           {"reader": reader_settings(connect_judge(experiment.reader, batch=False))}),
        version=__version__,
        seed=experiment.seed,
        recipes=recipes,
        panels=tuple(p.panel for p in panels),
        draws=experiment.draws,
        repeats=experiment.repeats,
        origin=_origin(experiment),
        ways=tuple(p.target.way for p in panels),
    )  # fmt: skip
    return Resolved(
        experiment=experiment, run=run, panels=tuple(panels), scorers=by_name, rewrites=needs
    )


def _origin(experiment: Experiment) -> dict[str, str]:
    """The name of the run's data, and the levels of its grid: what reports need to know."""
    data, grid = experiment.data, experiment.grid
    named = {} if data is None else {"data": source_name(data.path)}
    return named if grid is None else {**named, "grid": json.dumps(dict(grid))}


EXTRACTION_TOKENS = 256


def reader_settings(client: Client) -> dict[str, Any]:
    """Return the settings of a model that reads replies, enough to find its stored replies."""
    able = client.capabilities
    sampling = Sampling(max_tokens=REASONING_LIMIT if able.reasons else EXTRACTION_TOKENS)
    way = Way(asking="chat" if able.chats else "plain", sampling=sampling)
    return {"model": to_json(client.model), "way": to_json(way)}


def distinct(ids: Sequence[str], names: Sequence[str], what: str = "model") -> None:
    """Raise if the same thing is named twice, by one name or by two."""
    name_of: dict[str, str] = {}
    for identity, name in zip(ids, names, strict=True):
        if identity in name_of:
            other = name_of[identity]
            raise DuplicateName(
                f"The {what} '{name}' is named twice"
                if other == name
                else f"The {what}s '{other}' and '{name}' are the same",
                hint="drop one of the two",
            )
        name_of[identity] = name


def _has_own_limit(experiment: Experiment) -> bool:
    return experiment.sampling is not None and bool(experiment.sampling.max_tokens)


def _thinks(experiment: Experiment, client: Client) -> bool:
    """Return True if replies get the room that a model takes that thinks first."""
    return client.capabilities.reasons and not _has_own_limit(experiment)


def _target(
    experiment: Experiment,
    task: Task,
    spec: ModelSpec,
    client: Client,
    scorer: Scorer,
    others: Sequence[Scorer],
) -> Target:
    """Return the target of a panel: its model and the way to ask it."""
    sampling, remedy = experiment.sampling or Sampling(), remedy_of(experiment)
    if not _has_own_limit(experiment):
        least = 0 if remedy is None else remedy.reply_tokens
        if _thinks(experiment, client):
            least = REASONING_LIMIT
        sampling = replace(sampling, max_tokens=max(least, reply_tokens(task, scorer, others)))
    if task.stop and not sampling.stop:
        sampling = replace(sampling, stop=task.stop)
    asking: Asking = "chat" if client.capabilities.chats else "plain"
    return Target(
        model=client.model,
        asking="score" if scorer.needs_scores else asking,
        sampling=sampling,
        price=spec.price,
        constrained=constrains(scorer),
        answers=scorer.allowed(task.name) if isinstance(scorer, ConstrainedScorer) else None,
    )
