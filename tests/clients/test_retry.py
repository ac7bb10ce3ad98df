"""When to ask again, and when not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.clients.retry import AbortRun, GiveUp, Outcome, RetryPolicy, Wait, retry_after


def http(status: int, after: float | None = None) -> Outcome:
    return Outcome(what=f"HTTP {status}", message="told", status=status, retry_after=after)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, 599])
def test_passing_trouble_is_retried(status: int) -> None:
    """Statuses that time may heal are asked again until the attempts are used up."""
    policy = RetryPolicy(3)
    assert isinstance(policy.decide(1, http(status)), Wait)
    assert isinstance(policy.decide(2, http(status)), Wait)
    assert policy.decide(3, http(status)) == GiveUp(f"HTTP {status} after 3 attempts: told")


@pytest.mark.parametrize("what", ["connection failed", "timed out", "unusable answer"])
def test_trouble_without_a_status_is_retried(what: str) -> None:
    """No connection, no answer in time and an answer that cannot be read are asked again."""
    policy = RetryPolicy(2)
    assert isinstance(policy.decide(1, Outcome(what=what)), Wait)
    assert policy.decide(2, Outcome(what=what)) == GiveUp(f"{what} after 2 attempts")


@pytest.mark.parametrize("status", [300, 307, 400, 402, 404, 405, 413, 422, 451])
def test_the_callers_errors_are_final_at_once(status: int) -> None:
    """What would only repeat is not asked again, and its reason names no attempts."""
    assert RetryPolicy(6).decide(1, http(status)) == GiveUp(f"HTTP {status}: told")


def test_a_final_outcome_is_final_whatever_its_status() -> None:
    """An outcome marked final ends the request at the first attempt."""
    outcome = Outcome(what="HTTP 429", status=429, message="no quota", final=True)
    assert RetryPolicy(6).decide(1, outcome) == GiveUp("HTTP 429: no quota")


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("attempt", [1, 6])
def test_refused_credentials_stop_the_run(status: int, attempt: int) -> None:
    """A refused key stops everything, at whatever attempt it comes."""
    assert RetryPolicy(6).decide(attempt, http(status)) == AbortRun(f"HTTP {status}: told")


def test_one_attempt_means_no_second() -> None:
    """max_attempts=1 never waits."""
    assert RetryPolicy(1).decide(1, http(500)) == GiveUp("HTTP 500: told")


@given(st.integers(1, 5000), st.integers(0, 2**32), st.floats(0, 100), st.floats(0, 100))
def test_back_off_stays_within_its_ceiling(
    attempt: int, seed: int, base: float, cap: float
) -> None:
    """The wait is between 0 and min(cap, base · 2ⁿ⁻¹), for any attempt and without overflow."""
    decision = RetryPolicy(10_000, base, cap, seed=seed).decide(attempt, http(500))
    assert isinstance(decision, Wait)
    assert 0 <= decision.seconds <= min(cap, base * 2.0 ** min(attempt - 1, 60))


def test_back_off_has_full_jitter_and_repeats_with_its_seed() -> None:
    """Waits spread over the whole range, and the same seed gives the same waits."""

    def waits(seed: int) -> list[float]:
        policy = RetryPolicy(6, 1.0, 60.0, seed=seed)
        found = [policy.decide(4, http(500)) for _ in range(2000)]
        return [d.seconds for d in found if isinstance(d, Wait)]

    first = waits(1)
    assert first == waits(1)
    assert first != waits(2)
    assert sum(first) / len(first) == pytest.approx(4.0, abs=0.2)
    assert min(first) < 0.1
    assert max(first) > 7.9


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (2.5, 2.5), (60.0, 60.0), (3600, 60.0)])
def test_the_servers_wait_is_honoured_up_to_the_cap(asked: float, waited: float) -> None:
    """Retry-After is waited as it is, and cut at the longest wait."""
    assert RetryPolicy(6, cap=60.0).decide(1, http(429, asked)) == Wait(waited)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("7", 7.0),
        ("0.25", 0.25),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:16:50 -0000", 10.0),
        ("Thu, 01 Jan 1970 01:16:50 +0100", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    """Both forms of Retry-After are read; what is neither counts as absent."""
    assert retry_after(header, 1000.0) == seconds


@given(st.text(max_size=60))
def test_retry_after_survives_any_text(header: str) -> None:
    """No header, however odd, raises or gives a wait that is negative or not finite."""
    seconds = retry_after(header, 1.7e9)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))
