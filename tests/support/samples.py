"""Small records that several tests build on."""

from __future__ import annotations

from collections.abc import Iterator

from falter.records.planning import Target, request
from falter.records.types import (
    BASELINE,
    Item,
    Model,
    Panel,
    Prompt,
    Recipe,
    Request,
    Response,
    Run,
    Sampling,
    Section,
    Step,
    Variant,
)

MODEL = Model(client="scripted", name="scripted")
TARGET = Target(model=MODEL, asking="chat", sampling=Sampling())
LOUDER = Recipe(label="louder", group="test", steps=(Step(name="louder", version=1),))


def item(n: int) -> Item:
    return Item(task="numbers", key=str(n), fields={"q": f"{n}?"}, target=str(n))


def variant(n: int, recipe: Recipe = BASELINE) -> Variant:
    text = f"{n}?" if recipe is BASELINE else f"{n}?!"
    prompt = Prompt(sections=(Section(name="q", kind="input", text=text),), target=str(n))
    status = "baseline" if recipe is BASELINE else "changed"
    return Variant(item=item(n), recipe=recipe, draw=0, prompt=prompt, status=status)  # type: ignore[arg-type]


def requests(count: int, target: Target = TARGET) -> Iterator[Request]:
    """Two requests an item: the baseline and a changed one."""
    for n in range(count):
        yield request(variant(n), target, 0)
        yield request(variant(n, LOUDER), target, 0)


def answer(to: Request, text: str = "yes") -> Response:
    return Response(key=to.key, text=text, finish_reason="stop", received_at=1.0)


RUN = Run(
    experiment={"level": 0.95, "unparsed": "wrong"},
    version="0",
    seed=0,
    recipes=(BASELINE, LOUDER),
    panels=(Panel(task="numbers", revision="sha256:0", model=MODEL, scorer="exact"),),
    ways=(TARGET.way,),
)
