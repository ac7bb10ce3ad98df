"""Resolution of names to objects, with all checks that are possible before the first call."""

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
from falter.records.planning import Condition, PlannedRecipes, Target, count_cells, plan
from falter.records.types import Asking, Item, Panel, Recipe, Request, Run, Sampling, Way
from falter.rewrites.bank import Needs, ledger_for, needs_from
from falter.scorers.reading.reading import READER_VERSION
from falter.tasks.rows import source_name
from falter.tasks.task import Task

REASONING_LIMIT = 4096
"""Maximum reply of a model that is told to think first, in tokens, unless the user sets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPlan:
    """A panel with everything that is needed to run it.

    - `because` is the reason for its scorer, in words.
    - `thinks` says that the reply limit is the one for models that think first.
    - `asked` are the cells that a budget keeps, of `available` items; None without a budget.
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
    asked: PlannedRecipes | None = None
    available: int = 0

    def requests(self, draws: int, repeats: int = 1, items: int | None = None) -> Iterator[Request]:
        """Yield all requests in order, or only the requests of the first `items` items."""
        return plan(
            self.items[:items],
            self.conditions,
            self.target,
            draws=draws,
            repeats=repeats,
            asked=self.asked,
        )

    def cells(self, draws: int, repeats: int) -> int:
        """Return the number of requests that `requests` yields."""
        return count_cells(len(self.items), self.conditions, draws, repeats, self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An experiment with every name resolved to an object."""

    experiment: Experiment
    run: Run
    panels: tuple[PanelPlan, ...]
    scorers: Mapping[str, Scorer]
    rewrites: Needs | None = None

    @property
    def clients(self) -> list[Client]:
        """The clients of all panels, each once."""
        return list({id(p.client): p.client for p in self.panels}.values())


def resolve(
    experiment: Experiment,
    bank: RewriteBank | None = None,
    *,
    loaded: Sequence[Task] | None = None,
    clients: Sequence[Client] | None = None,
    recipes: tuple[Recipe, ...] | None = None,
) -> Resolved:
    """Resolve names to objects, or raise with the name that does not fit. Sends nothing.

    `bank` holds the rewrites of perturbations that need a model. The `rewrites` of the result list
    the missing ones, and a result with missing ones can be counted but not run. Tasks, clients (one
    for each model) and recipes can be passed in if they already exist.
    """
    recipes = recipes_of(experiment) if recipes is None else recipes
    distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    if not experiment.models:
        raise refusal(UsageError, "engine.no_model")
    require_fit_remedy(experiment, recipes)
    loaded = load_tasks(experiment) if loaded is None else loaded
    labels = {task.name: task_labels(experiment, task) for task in loaded}
    ordered_clients = connect_all(experiment) if clients is None else clients
    connected = list(zip(experiment.models, ordered_clients, strict=True))
    distinct([client.model.id for _, client in connected], [s.name for s in experiment.models])
    ledger = ledger_for(recipes, bank)
    panels: list[PanelPlan] = []
    by_name: dict[str, Scorer] = {}
    made: dict[tuple[int, int], tuple[Condition, ...]] = {}  # shared by panels with equal prompts
    for n, task in enumerate(loaded):
        held_out, items = hold_out(task, experiment, recipes)
        for spec, client in connected:
            panel_scorers = tuple(
                with_reasoning(with_labels(scorer, labels), {"remedy": experiment.remedy})
                for scorer in task_scorers(experiment, loaded, n, spec, client.capabilities)
            )
            for scorer in panel_scorers:
                require_fit_chat(experiment, task, scorer, spec, client.capabilities, recipes)
                require_fit(scorer, spec, task, client.capabilities, recipes)
                if experiment.batch:
                    require_batches(spec, client, scorer)
                require_targets(scorer, task, items)
                require_readable(experiment, scorer)
                by_name[scorer.name] = scorer
                key = n, id(template_for(task, scorer))
                if key not in made:
                    made[key] = conditions(experiment, task, scorer, recipes, held_out, ledger)
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
                        conditions=made[key],
                        target=_panel_target(experiment, task, spec, client, scorer, panel_scorers),
                        client=client,
                        concurrency=spec.concurrency or 64,
                        because=scorer_reason(experiment, loaded, n, spec, scorer),
                        thinks=_thinks(experiment, client),
                    )
                )
    require_label_scorer(experiment, by_name.values())
    needs = None
    if ledger is not None:  # models with equal prompts share conditions, and so their needs
        sets = {id(p.conditions): (p.items, p.conditions, experiment.draws) for p in panels}
        needs = needs_from(ledger, sets.values(), asks=experiment.rewriter is not None)
    labelled_tasks = {p.panel.task for p in panels if reads_labels(by_name[p.panel.scorer])}
    run = Run(
        experiment=identity_settings(experiment)
        | ({"rewrites": needs.fingerprint} if needs else {})
        | ({"labels": {task: list(labels[task]) for task in sorted(labelled_tasks)}}
           if labelled_tasks else {})
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
    """Return facts for reports: the name of the run's data, and the levels of its grid."""
    data, grid = experiment.data, experiment.grid
    named = {} if data is None else {"data": source_name(data.path)}
    return named if grid is None else {**named, "grid": json.dumps(dict(grid))}


EXTRACTION_TOKENS = 256
"""Maximum reply of a model that extracts answers and does not think first, in tokens."""


def reader_settings(client: Client) -> dict[str, Any]:
    """Return the settings of a model that extracts answers; they find its stored replies."""
    able = client.capabilities
    sampling = Sampling(max_tokens=REASONING_LIMIT if able.reasons else EXTRACTION_TOKENS)
    way = Way(asking="chat" if able.chats else "plain", sampling=sampling)
    return {"model": to_json(client.model), "way": to_json(way)}


def distinct(ids: Sequence[str], names: Sequence[str], what: str = "model") -> None:
    """Raise `DuplicateName` if one thing is named twice, by one name or by two."""
    name_by_id: dict[str, str] = {}
    for identity, name in zip(ids, names, strict=True):
        if identity in name_by_id:
            other = name_by_id[identity]
            raise DuplicateName(
                f"The {what} '{name}' is named twice"
                if other == name
                else f"The {what}s '{other}' and '{name}' are the same",
                hint="drop one of the two",
            )
        name_by_id[identity] = name


def _has_own_limit(experiment: Experiment) -> bool:
    """Return True if the user limits the length of replies."""
    return experiment.sampling is not None and bool(experiment.sampling.max_tokens)


def _thinks(experiment: Experiment, client: Client) -> bool:
    """Return True if replies get the limit of a model that thinks first."""
    return client.capabilities.reasons and not _has_own_limit(experiment)


def _panel_target(
    experiment: Experiment,
    task: Task,
    spec: ModelSpec,
    client: Client,
    scorer: Scorer,
    others: Sequence[Scorer],
) -> Target:
    """Return the target of a panel: its model and the settings of its requests."""
    sampling, remedy = experiment.sampling or Sampling(), remedy_of(experiment)
    if not _has_own_limit(experiment):
        min_tokens = 0 if remedy is None else remedy.reply_tokens
        if _thinks(experiment, client):
            min_tokens = REASONING_LIMIT
        sampling = replace(sampling, max_tokens=max(min_tokens, reply_tokens(task, scorer, others)))
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
