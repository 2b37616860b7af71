"""Parts by themselves: queues, the E-model, and the environment for learning."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import numpy
import pytest

import trunkline
from trunkline import gym

MS = 1_000_000


def test_a_queue_gives_packets_in_order_and_drops_at_its_limit() -> None:
    queue = trunkline.Queue("fifo", limit="2 packets")
    assert [queue.enqueue(0, 100) for _ in range(3)] == [[], [], [2]]
    assert (queue.backlog, queue.dropped) == ((2, 200), 1)
    assert queue.dequeue(1) == trunkline.Packet(0, 100, 0, False)
    assert queue.dequeue(1) == (1, 100, 0, False)
    assert queue.dequeue(1) is None


def test_time_does_not_go_back() -> None:
    queue = trunkline.Queue("fifo")
    queue.enqueue(10, 100)
    with pytest.raises(trunkline.ExperimentError, match="time goes back from 10 to 9 ns"):
        queue.dequeue(9)


def test_an_unknown_queue_is_refused_as_in_a_file() -> None:
    with pytest.raises(trunkline.ExperimentError, match="fq-codel"):
        trunkline.Queue("fq-codle")


def test_a_line_transmits_what_its_queue_gives() -> None:
    """Of a FIFO this is arithmetic: each packet leaves its transmission time after it arrived, or after the one before."""
    arrivals = numpy.array([0, 100, 5 * MS], numpy.uint64)
    departures, marks = trunkline.Queue("fifo").transmit(arrivals, 1250, rate=10e6)
    assert departures.tolist() == [1 * MS, 2 * MS, 6 * MS]
    assert not marks.any()


def test_packets_that_wait_are_not_those_of_the_arrays() -> None:
    queue = trunkline.Queue("fifo")
    queue.enqueue(0, 1250)
    queue.enqueue(0, 1250)
    departures, _ = queue.transmit([0, 10 * MS], 1250, rate=10e6)
    assert departures.tolist() == [3 * MS, 11 * MS]
    with pytest.raises(trunkline.ExperimentError, match="2\\^63"):
        queue.enqueue(20 * MS, 1250, id=1 << 63)


def test_arrays_are_refused_where_they_would_wrap() -> None:
    queue = trunkline.Queue("fifo")
    for arrivals, sizes in (([-1], 100), ([0.5], 100), ([numpy.nan], 100), ([0], -1), ([0], 1.5), ([0], 1 << 32)):
        with pytest.raises(trunkline.ExperimentError, match="whole numbers"):
            queue.transmit(arrivals, sizes, rate=10e6)
    with pytest.raises(trunkline.ExperimentError, match="time goes back from 5 to 4 ns"):
        queue.transmit([5, 4], 100, rate=10e6)
    with pytest.raises(trunkline.ExperimentError, match="too low"):
        queue.transmit([0], 1250, rate=1e-9)
    assert queue.backlog == (0, 0), "nothing of what is refused is enqueued"
    queue.enqueue(10, 100)
    with pytest.raises(trunkline.ExperimentError, match="time goes back from 10 to 9 ns"):
        queue.transmit([9], 100, rate=10e6)


@pytest.mark.usefixtures("switching")
def test_threads_share_a_queue() -> None:
    """A deadlock would leave the threads alive."""
    queue = trunkline.Queue("fifo", limit="100 packets")
    arrivals = numpy.arange(20_000)

    def transmit() -> None:
        for _ in range(10):
            try:
                queue.transmit(arrivals, 100, rate=10e9)
            except trunkline.ExperimentError:
                # The other thread was faster: the error is built in Python.
                pass

    def look() -> None:
        for _ in range(20_000):
            assert queue.backlog[0] <= 100

    threads = [threading.Thread(target=target, daemon=True) for target in (transmit, transmit, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_codel_marks_and_fair_queues_protect() -> None:
    """A flow that sends twice the line's rate, beside one that sends a twentieth."""
    rate, count = 10e6, 4000
    greedy = numpy.arange(count) * int(0.6 * MS)
    modest = numpy.arange(count // 12) * int(7.2 * MS) + 1
    arrivals = numpy.concatenate([greedy, modest])
    order = numpy.argsort(arrivals, kind="stable")
    flows = numpy.concatenate([numpy.zeros(count), numpy.ones(count // 12)])[order]
    arrivals = arrivals[order]

    def worst_delay(kind: str, flow: int, **values: str) -> float:
        departures, _ = trunkline.Queue(kind, **values).transmit(arrivals, 1500, flows, rate=rate)
        arrived = (departures >= 0) & (flows == flow)
        return float((departures[arrived] - arrivals[arrived]).max()) / MS

    assert worst_delay("fifo", 1) > 50 > 10 > worst_delay("fq-codel", 1)
    _, marks = trunkline.Queue("codel", ecn=True).transmit(arrivals, 1500, flows, rate=rate, ecn=True)
    assert marks.any()


def test_the_e_model_is_that_of_g_107() -> None:
    assert trunkline.e_model(0.0).r == pytest.approx(93.2, abs=0.05)
    assert trunkline.e_model(0.4).r < trunkline.e_model(0.15).r
    assert trunkline.e_model(0.05, 0.02, codec="g711-plc").mos > trunkline.e_model(0.05, 0.02).mos
    with pytest.raises(trunkline.ExperimentError, match="unknown codec"):
        trunkline.e_model(0.1, codec="g712")
    for ratio in (0.5, float("nan"), float("inf")):
        with pytest.raises(trunkline.ExperimentError, match="burst ratio"):
            trunkline.e_model(0.1, 0.02, burst_ratio=ratio)


def test_the_environment_is_one_of_gymnasium(experiment: trunkline.Experiment) -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(gym.RateControl(experiment), skip_render_check=True)


def test_a_rate_below_the_line_s_has_no_queue_and_one_above_fills_it(experiment: trunkline.Experiment) -> None:
    environment = gym.RateControl(experiment, steps=50)
    environment.reset(seed=1)
    seen = [environment.step([-1.0])[4]["seen"] for _ in range(8)]
    assert seen[-1].loss == 0.0 and seen[-1].delay == pytest.approx(seen[-1].least_delay)
    ended = [environment.step([1.0]) for _ in range(42)]
    assert [step[3] for step in ended] == [False] * 41 + [True]
    last = ended[-1][4]["seen"]
    # The line is full, its queue of 64 KiB too, and what is more is dropped.
    assert last.throughput == pytest.approx(2e6, rel=0.1)
    assert last.delay == pytest.approx(0.02 + 64 * 1024 * 8 / 2e6, rel=0.1)
    assert last.loss > 0.5


def test_an_episode_is_repeated_by_its_seed(experiment: trunkline.Experiment) -> None:
    experiment["link.trunk.loss"] = "5 %"

    def episode(seed: int) -> list[float]:
        environment = gym.RateControl(experiment)
        environment.reset(seed=seed)
        return [float(environment.step([0.1])[1]) for _ in range(20)]

    assert episode(3) == episode(3) != episode(4)


def test_an_unknown_link_is_refused(experiment: trunkline.Experiment) -> None:
    with pytest.raises(trunkline.ExperimentError, match="there is no link `trank`; did you mean `trunk`?"):
        gym.RateControl(experiment, link="trank")


def test_a_link_without_a_rate_needs_one() -> None:
    """Of a trace: the environment sent at a share of 2^64 bit/s, for hours."""
    experiment = trunkline.Experiment.load(Path(__file__).parents[2] / "examples" / "cellular-trace.toml")
    with pytest.raises(trunkline.ExperimentError, match="`link_rate=`"):
        gym.RateControl(experiment)
    for wrong in (0.0, -1e6, float("nan"), float("inf")):
        with pytest.raises(trunkline.ExperimentError, match="positive number"):
            gym.RateControl(experiment, link_rate=wrong)
    environment = gym.RateControl(experiment, link_rate=1.3e6)
    environment.reset(seed=1)
    seen = [environment.step([0.0])[4]["seen"] for _ in range(50)]
    assert {step.link_rate for step in seen} == {1.3e6}
    assert len({step.throughput for step in seen}) > 1, "the rate changes over time"


def test_a_step_has_a_bound(experiment: trunkline.Experiment) -> None:
    link = trunkline._trunkline.Bottleneck(experiment._core, None, 1500, 0)
    with pytest.raises(ValueError, match="3600 s"):
        link.step(1e6, 3601.0)
    with pytest.raises(ValueError, match="10000000 packets"):
        link.step(1e12, 1.0)
    *_, now = link.step(1e6, 0.1)
    assert now == pytest.approx(0.1), "what is refused sends nothing"


def test_a_long_step_is_interrupted(experiment: trunkline.Experiment) -> None:
    link = trunkline._trunkline.Bottleneck(experiment._core, None, 100, 0)

    def interrupt(*_: object) -> None:
        with pytest.raises(trunkline.TrunklineError, match="not over"):
            link.step(1e6, 0.1)
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            link.step(8e8 * 2, 4.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    *_, now = link.step(1e6, 0.1)
    assert 0.1 < now < 4.0, "the link goes on where it was interrupted"
