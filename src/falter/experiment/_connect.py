"""The clients of an experiment's models, and what they must be able to do."""

from __future__ import annotations

from dataclasses import fields

from falter.clients import ClientSettings, clients
from falter.core.errors import UsageError, nearest
from falter.core.interfaces import Client, Scorer
from falter.experiment._config import EngineSpec, Experiment, ModelSpec
from falter.scorers import usual_scorer

__all__ = ["connect", "connect_all", "connect_judge", "require_batches"]


def connect_all(experiment: Experiment) -> tuple[Client, ...]:
    """The clients of the models that are asked, in engines of their own where that is wanted."""
    engine = experiment.engine
    if engine is not None and experiment.batch:
        raise UsageError(
            "--engine and --batch exclude each other: a provider answers a batch by itself",
            hint="leave one of them out",
        )
    return tuple(connect(model, engine) for model in experiment.models)


def connect(spec: ModelSpec, engine: EngineSpec | None = None) -> Client:
    name, mark, rest = spec.name.partition(":")
    if not mark and name not in clients.names() and nearest(name, clients.names()) is None:
        raise UsageError(
            f"Unknown model '{name}'",
            hint=f"a model on a server is named with its client, as in 'openai:{name}'; 'falter "
            "list clients' has the others",
        )
    connector = clients.get(name)
    shared = {f.name for f in fields(ClientSettings)} & {f.name for f in fields(spec)} - {"name"}
    given = {name: getattr(spec, name) for name in shared}
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = ClientSettings(name=rest, **chosen)
    client = connector(settings)
    if engine is None:
        return client
    from falter.clients.engines import EngineClient, hosts

    host = hosts.get(engine.name)
    model = client.model
    return EngineClient(client, host(name, settings, model, count=engine.actors, gpus=engine.gpus))


def connect_judge(spec: ModelSpec, *, batch: bool) -> Client:
    """A model that judges; in batches if that is how all is asked."""
    judge = connect(spec)
    if not judge.capabilities.generates:
        raise UsageError(
            f"The judge '{spec.name}' cannot write text",
            hint="name a model that generates text",
        )
    if batch:
        require_batches(spec, judge)
    return judge


def require_batches(spec: ModelSpec, client: Client, scorer: Scorer | None = None) -> None:
    """Raise unless what the scorer asks of the model may be handed in as a batch."""
    if not client.capabilities.batches:
        raise UsageError(
            f"'{spec.name}' takes no batches",
            hint="leave --batch out; of the clients that come with falter, those of OpenAI (and "
            "hosts with its interface), Anthropic and Gemini take them",
        )
    if scorer is not None and scorer.needs_scores:
        raise UsageError(
            f"The scorer '{scorer.name}' needs log-probabilities, which are not asked in batches",
            hint=f"use scorer {usual_scorer(choices=True, likelihoods=False)}, or leave --batch "
            "out",
        )
