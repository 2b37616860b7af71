"""Rate controllers for learning: a gymnasium environment over a link of the simulator.

Each step, the agent sees what the last interval has shown and sets the sender's rate for the next::

    from trunkline import gym
    env = gym.RateControl(exp, link="trunk")
    seen, _ = env.reset(seed=7)
    seen, reward, terminated, truncated, info = env.step([0.5])

The link is the experiment's: medium, rate over time, delay, queue, loss. Other flows of the experiment do not send.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from trunkline import _trunkline
from trunkline._errors import ExperimentError
from trunkline._experiment import Experiment

__all__ = ["RateControl", "Seen", "reward"]

_UNLIMITED = 2**64 - 1
"""The rate of a link that has none."""


@dataclass(frozen=True)
class Seen:
    """What one interval has shown."""

    rate: float
    """The rate at which was sent, in bits per second."""
    throughput: float
    """Bits per second that arrived."""
    delay: float
    """Mean one-way delay of the packets that arrived, in seconds; the last known one if none did."""
    least_delay: float
    """The least mean delay of an interval so far."""
    loss: float
    """Packets that were dropped, as a share of those sent."""
    marks: float
    """Packets that arrived with a congestion mark, as a share of those that arrived."""
    link_rate: float
    """Bits per second of the line."""


def reward(seen: Seen) -> float:
    """Throughput as a share of the line's rate, less the queue's delay (1 for 100 ms) and ten times the loss."""
    return seen.throughput / seen.link_rate - 10.0 * (seen.delay - seen.least_delay) - 10.0 * seen.loss


class RateControl(gymnasium.Env[numpy.ndarray, numpy.ndarray]):  # type: ignore[misc, unused-ignore]
    """A sender whose rate the agent changes.

    An action in [-1, 1] multiplies the rate by up to two or divides it. An observation is the rate, the throughput (both as
    shares of the line's rate), the delay over the least delay, the loss and the marks.

    :param experiment: the first point of its sweep; it needs no flows.
    :param link: the link's name; the first unless told otherwise.
    :param link_rate: bits per second that count as the line's rate: the file's, unless told otherwise. Needed for traces, which
        have no rate.
    :param interval: seconds of a step; the link's round trip (at least 10 ms) unless told otherwise.
    :param steps: steps of an episode.
    :param size: bytes of a packet, with IP header.
    :param reward: another reward than :func:`reward`.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        experiment: Experiment,
        *,
        link: str | None = None,
        link_rate: float | None = None,
        interval: float | None = None,
        steps: int = 400,
        size: int = 1500,
        reward: Callable[[Seen], float] = reward,
    ) -> None:
        self._core = _trunkline.Bottleneck(experiment._core, link, size, 0)
        self._interval = interval if interval is not None else max(2.0 * self._core.delay, 0.01)
        self._steps = steps
        self._reward = reward
        if link_rate is None and self._core.rate == _UNLIMITED:
            raise ExperimentError("the link has no rate in the file; name one with `link_rate=`")
        self._link_rate = float(self._core.rate if link_rate is None else link_rate)
        if not 0.0 < self._link_rate < math.inf:
            raise ExperimentError(f"`link_rate` must be a positive number of bit/s, not {link_rate}")
        self._least = self._rate = self._delay = math.nan
        self._step = 0
        self.action_space = spaces.Box(-1.0, 1.0, (1,), numpy.float32)
        high = numpy.array([numpy.inf, numpy.inf, numpy.inf, 1.0, 1.0], numpy.float32)
        self.observation_space = spaces.Box(numpy.zeros(5, numpy.float32), high)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begins an episode on an empty link at a random rate between 10 % and 100 % of the line's."""
        super().reset(seed=seed)
        self._core.reset(int(self.np_random.integers(2**63)))
        self._step = 0
        self._rate = self._link_rate * float(self.np_random.uniform(0.1, 1.0))
        self._delay = self._core.delay
        self._least = math.inf
        return self._observe(self._advance()), {}

    def step(self, action: Any) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Changes the rate and sends for an interval."""
        change = min(max(float(action[0]), -1.0), 1.0)
        self._rate = min(max(self._rate * 2.0**change, 0.001 * self._link_rate), 8.0 * self._link_rate)
        seen = self._advance()
        self._step += 1
        return self._observe(seen), self._reward(seen), False, self._step >= self._steps, {"seen": seen}

    def _advance(self) -> Seen:
        size, mean, _, sent, arrived, lost, marked, _ = self._core.step(self._rate, self._interval)
        if arrived:
            self._delay = mean
            self._least = min(self._least, mean)
        least = self._least if self._least < math.inf else self._delay
        throughput = 8.0 * size / self._interval
        loss = min(lost / sent, 1.0) if sent else 0.0
        marks = marked / arrived if arrived else 0.0
        return Seen(self._rate, throughput, self._delay, least, loss, marks, self._link_rate)

    def _observe(self, seen: Seen) -> numpy.ndarray:
        over = seen.delay / seen.least_delay if seen.least_delay > 0 else 1.0
        values = (seen.rate / seen.link_rate, seen.throughput / seen.link_rate, over, seen.loss, seen.marks)
        observed: numpy.ndarray = numpy.array(values, numpy.float32)
        return observed
