"""Price lists: which price a model gets, and that none is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falter.cli.app import invoke
from falter.engine.budgets import PriceList, price_lists, read_prices, with_prices
from falter.engine.config import read_experiment
from falter.records.errors import InvalidValue, UnknownName, UsageError
from falter.records.planning import Price

MINE = "currency: EUR\nmodels:\n  mine: {input: 1, output: 2}\n  a/b: {input: 3, output: 4}\n"


@pytest.fixture
def mine(tmp_path: Path) -> PriceList:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return read_prices(str(path))


def test_the_bundled_list_is_read_and_whole() -> None:
    """Every price is above 0, and a token written costs more than a token read."""
    assert price_lists() == ["2025-11"]
    found = read_prices("2025-11")
    assert found.currency == "USD"
    assert found.models["gpt-4o-mini"] == Price(input=0.15, output=0.6)
    assert all(0 < p.input < p.output for p in found.models.values())
    for name, price in found.models.items():
        for longer in found.models:
            if longer.startswith(f"{name}-20"):
                assert found.models[longer] == price, "a dated name costs what the bare one does"


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("openai:mine", (1, 2)),
        ("inspect:some/provider/mine", (1, 2)),
        ("openai:a/b", (3, 4)),
        ("inspect:x/a/b", None),
        ("openai:mine-2", None),
        ("openai:MINE", None),
        ("openai:min", None),
        ("openai:", None),
        ("lm-eval:openai-chat-completions,model=mine", None),
        ("smollm2", (0, 0)),
        ("smollm2:q4_0", (0, 0)),
        ("hf:a/b", (0, 0)),
        ("vllm:mine", (0, 0)),
        ("simulated", (0, 0)),
    ],
)
def test_a_name_has_its_own_price_or_none(
    mine: PriceList, model: str, price: tuple[float, float] | None
) -> None:
    """Whole names only; what runs in this process costs nothing."""
    found = mine.price(model)
    wanted = None if price is None else Price(input=price[0], output=price[1], currency="EUR")
    assert found == wanted


def test_a_price_of_the_experiment_wins(mine: PriceList) -> None:
    """Where it gives none, that of the list; other settings stay as they are."""
    models = ["openai:other", {"name": "openai:mine", "price": {"input": 9}}, "openai:mine"]
    settings: dict[str, Any] = {"task": "basics", "models": models, "seed": 3}
    plain = read_experiment(settings)
    wanted = [None, Price(input=9, output=0), Price(input=1, output=2, currency="EUR")]
    priced = with_prices(plain, mine)
    assert [model.price for model in priced.models] == wanted
    assert priced.seed == 3


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", InvalidValue, "bad.yaml is None"),
        ("- a", InvalidValue, "expected a mapping"),
        ("models: {m: {input: 1, output: 1}}", UsageError, "bad.yaml.currency is missing"),
        ("currency: USD", UsageError, "bad.yaml.models is missing"),
        ("currency: USD\nmodels: 3", InvalidValue, "bad.yaml.models is 3"),
        ("currency: USD\nmodels: {m: }", InvalidValue, "bad.yaml.models.m is None"),
        ("currency: USD\nmodels: {m: 3}", InvalidValue, "bad.yaml.models.m is 3"),
        ("currency: USD\nmodels: {m: {input: 1}}", UsageError, "bad.yaml.models.m.output is miss"),
        ("currency: USD\nmodels: {m: {input: -1, output: 1}}", InvalidValue, "m.input is -1"),
        ("currency: USD\nmodels: {m: {input: .inf, output: 1}}", InvalidValue, "m.input is inf"),
        ("currency: USD\nmodels: {m: {input: a, output: 1}}", InvalidValue, "m.input is 'a'"),
        ("currency: USD\nmodels: {m: {input: 1, output: 1, batched: 1}}", UnknownName, "'batched'"),
        ("currency: USD\nmodel: {}\nmodels: {}", UnknownName, "'model'"),
        ("currency:\tUSD", UsageError, "not YAML"),
    ],
)
def test_a_list_that_is_wrong_says_where(
    tmp_path: Path, text: str, error: type[Exception], said: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(error) as caught:
        read_prices(str(path))
    assert said in str(caught.value)


@pytest.mark.parametrize("source", ["2024-11", "gone.yaml", ""])
def test_a_list_that_is_nowhere_names_those_there_are(source: str) -> None:
    with pytest.raises(UsageError, match="2025-11"):
        read_prices(source)


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke(["plan", "--limit", "4", *arguments]) == 0
    return capsys.readouterr().out


def test_plan_prints_the_cost_and_what_has_no_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Worked by hand from the plan's own tokens. Without a list, nothing about prices."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(MINE)
    arguments = ["--task", "sums", "--base-url", "http://127.0.0.1:9/v1"]
    for model in ("openai:mine", "openai:other"):
        arguments += ["--model", model]
    assert "cost" not in planned(capsys, *arguments)
    text = planned(capsys, *arguments, "--prices", "mine.yaml")
    assert text.count(" EUR") == 2, "the panel, and all together"
    assert text.count("no price in mine.yaml") == 1
    found = json.loads(planned(capsys, *arguments, "--prices", "mine.yaml", "--json"))["panels"]
    priced, other = found
    tokens = priced["prompt_tokens"], priced["completion_tokens_at_most"]
    assert priced["cost_at_most"] == pytest.approx((tokens[0] * 1 + tokens[1] * 2) / 1e6)
    assert (priced["currency"], priced["price_list"]) == ("EUR", "mine.yaml")
    assert (other["cost_at_most"], other["currency"]) == (None, None)
    assert f"cost at most {priced['cost_at_most']:,.4f} EUR" in text


def test_plan_prices_a_protocol_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The amounts of the parts add up to the sum that is shown."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(MINE)
    arguments = ["--protocol", "brittlebench", "--model", "openai:mine"]
    arguments += ["--base-url", "http://127.0.0.1:9/v1", "--prices", "mine.yaml"]
    rows = json.loads(planned(capsys, *arguments, "--json"))["panels"]
    assert len(rows) > 3
    whole = sum(row["cost_at_most"] for row in rows)
    assert f"cost at most {whole:,.2f} EUR" in planned(capsys, *arguments)


def test_shared_beginnings_cost_less_where_the_price_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of long prompts: the plan states both costs. Short ones are kept by nobody."""
    monkeypatch.chdir(tmp_path)
    rows = [{"q": f"What is {n} plus {n}?", "answer": str(2 * n)} for n in range(8)]
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("p.yaml").write_text("currency: EUR\nmodels: {m: {input: 10, output: 20, cached: 1}}")

    def planned(template: str) -> tuple[dict[str, Any], str]:
        Path("t.txt").write_text(template + "\n{q}")
        command = "plan --data d.jsonl --template t.txt -m openai:m --prices p.yaml -r typos"
        arguments = [*command.split(), "--target", "answer", "--base-url", "http://127.0.0.1:9/v1"]
        assert invoke([*arguments, "--json"]) == 0
        (panel,) = json.loads(capsys.readouterr().out)["panels"]
        assert invoke(arguments) == 0
        return panel, capsys.readouterr().out

    panel, shown = planned("Answer with a number, please. " * 200)
    assert panel["calls"] == 16 and panel["cached_tokens"] >= 15 * 1500
    saved = panel["cost_at_most"] - panel["cost_if_cached"]
    assert saved == pytest.approx(panel["cached_tokens"] * 9 / 1e6)
    assert "if the provider keeps shared beginnings" in shown
    short, shown = planned("Answer with a number.")
    assert short["cached_tokens"] == 0 and "shared beginnings" not in shown
