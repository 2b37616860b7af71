"""Machines by themselves: engines, links, sources, loss models, meters and clocks, driven in virtual time."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import numpy
import pytest

import trunkline

MS = 1_000_000


def converse(
    near: trunkline.Endpoint,
    far: trunkline.Endpoint,
    link: trunkline.Link,
    data: bytes,
    piece: int,
    *,
    connects: bool = True,
) -> tuple[bytes, int]:
    """Sends data from one end to the other in pieces. Returns what has arrived, and when the last of it did."""
    ends, number = (near, far), itertools.count()
    events: list[tuple[int, int, int, Any]] = []
    now, sent, connected, got = 0, 0, not connects, bytearray()

    def later(time: int, end: int, what: Any) -> None:
        heapq.heappush(events, (time, next(number), end, what))

    def take(happened: tuple[list[trunkline.Arrival], list[trunkline.Drop]]) -> None:
        for arrival in happened[0]:
            later(arrival.time, arrival.end, arrival)

    while len(got) < len(data):
        connected = connected or any(event.kind == "connected" for event in near.events())
        while connected and sent < len(data) and near.send(now, data[sent : sent + piece]):
            sent += piece
        for end, endpoint in enumerate(ends):
            while (datagram := endpoint.transmit(now)) is not None:
                later(datagram.earliest, end, datagram)
        timeouts = [endpoint.next_timeout for endpoint in ends]
        times = [events[0][0] if events else None, link.next_event, *timeouts]
        now = min(time for time in times if time is not None)
        assert now < 600_000 * MS, "it does not end"
        if link.next_event == now:
            take(link.advance(now))
        for endpoint in ends:
            if endpoint.next_timeout == now:
                endpoint.handle_timeout(now)
        while events and events[0][0] == now:
            _, _, end, what = heapq.heappop(events)
            if isinstance(what, trunkline.Arrival):
                ends[end].handle_packet(now, what.packet, ecn=what.ecn)
            else:
                take(link.offer(now, what.size, end=end, packet=what.packet, ecn=what.ecn))
        while (message := far.receive()) is not None:
            got += message
    return bytes(got), now


def test_tcp_fills_a_link_and_repairs_its_losses() -> None:
    data = numpy.random.default_rng(1).bytes(2_000_000)
    near, far = trunkline.endpoints("tcp", congestion_control="cubic", seed=3)
    link = trunkline.Link(rate="10 Mbit/s", delay="10 ms", queue={"kind": "fifo", "limit": "50 packets"})
    got, took = converse(near, far, link, data, 8192)
    assert got == data
    # 2 MB at 10 Mbit/s are 1.6 s, without headers, the handshake and the begin.
    assert 1.6e9 < took < 2.2e9
    assert near.window is not None and near.window.congestion_window > 10_000
    # At most that of the path and a full queue of 50 packets.
    assert near.window.round_trip is not None and 0.02 < near.window.round_trip < 0.085

    near, far = trunkline.endpoints("tcp", seed=3)
    lossy = trunkline.Link(rate="10 Mbit/s", delay="10 ms", loss="1 %", seed=5)
    got, longer = converse(near, far, lossy, data, 8192)
    assert got == data and longer > took
    assert sum(count for name, count in near.counters.items() if "retrans" in name) > 0


@pytest.mark.parametrize("kind", ["udp", "sctp", "dccp", "rtp"])
def test_engines_of_messages_deliver_them(kind: str) -> None:
    near, far = trunkline.endpoints(kind)
    link = trunkline.Link(rate="10 Mbit/s", delay="10 ms")
    got, _ = converse(near, far, link, b"0123456789" * 10, 10, connects=kind not in ("udp", "rtp"))
    assert got == b"0123456789" * 10


def test_what_an_engine_refuses_is_said() -> None:
    with pytest.raises(trunkline.ExperimentError, match="did you mean `sctp`"):
        trunkline.endpoints("sctq")
    near, _ = trunkline.endpoints("tcp")
    with pytest.raises(trunkline.TrunklineError, match="not connected yet"):
        near.send(0, b"hello")
    near.handle_timeout(10)
    with pytest.raises(trunkline.ExperimentError, match="time goes back from 10 to 9 ns"):
        near.handle_timeout(9)
    with pytest.raises(trunkline.ExperimentError, match="ECN field"):
        near.handle_packet(10, b"", ecn=4)
    near, _ = trunkline.endpoints("udp")
    with pytest.raises(trunkline.ExperimentError, match="maximum message size"):
        near.send(0, bytes(70_000))


def test_a_link_delays_marks_and_drops() -> None:
    link = trunkline.Link(rate="10 Mbit/s", delay="20 ms", queue={"kind": "fifo", "limit": "1 packets"})
    arrivals, drops = link.offer(0, 1250, packet=b"first", flow=7)
    assert arrivals == [(21 * MS, 0, 1, b"first", 1250, 7, 0)] and drops == []
    assert link.offer(0, 1250) == ([], [])
    assert link.offer(0, 1250) == ([], [trunkline.Drop(0, 2, "queue-full")])
    assert link.backlog() == (1, 1250) and link.next_event == 1 * MS
    arrivals, _ = link.advance(1 * MS)
    assert [(arrival.time, arrival.id) for arrival in arrivals] == [(22 * MS, 1)]
    back, _ = link.offer(2 * MS, 1250, end=1)
    assert [(arrival.time, arrival.end) for arrival in back] == [(23 * MS, 0)]
    with pytest.raises(trunkline.ExperimentError, match="no 2"):
        link.offer(2 * MS, 1250, end=2)
    with pytest.raises(trunkline.ExperimentError, match="did you mean `delay`"):
        trunkline.Link(rate="10 Mbit/s", dely="20 ms")


def test_a_source_is_due_when_its_model_says() -> None:
    due, sizes, channels = trunkline.Source("voice", samples=80, channels=2, duration="1 s").schedule()
    assert len(due) == 200 and set(sizes) == {80}
    for channel in (0, 1):
        assert set(numpy.diff(due[channels == channel].astype(numpy.int64))) == {10 * MS}
    source = trunkline.Source("voice", samples=80, duration="1 s")
    first = source.next_due
    assert first is not None
    assert source.produce(first) == [trunkline.Message(first, 80, 0, False)]
    late = source.produce(first + 35 * MS)
    assert [message.due - first for message in late] == [10 * MS, 20 * MS, 30 * MS]
    rest, _, _ = source.schedule()
    assert len(rest) == 96 and source.is_finished
    again = trunkline.Source("load", message="100 B", interval={"kind": "exponential", "mean": "1 ms"}, seed=4)
    other = trunkline.Source("load", message="100 B", interval={"kind": "exponential", "mean": "1 ms"}, seed=4)
    assert numpy.array_equal(again.schedule()[0], other.schedule()[0])


def test_a_source_without_a_pace_goes_as_its_transport_does() -> None:
    source = trunkline.Source("bulk", message="8 KiB", bytes="20 KiB")
    with pytest.raises(trunkline.ExperimentError, match="waits for answers or for its transport"):
        source.schedule()
    sizes = []
    while source.next_due is not None and len(sizes) < 10:
        sizes += [message.size for message in source.produce(source.next_due)]
    assert sum(sizes) == 20 * 1024
    with pytest.raises(trunkline.ExperimentError, match="samples"):
        trunkline.Source("voice", sample=80)


def test_losses_come_in_bursts() -> None:
    times = numpy.arange(200_000) * MS
    lost = trunkline.Loss("gilbert-elliott", to_bad="1 %", to_good="25 %", seed=2).losses(times)
    assert lost.mean() == pytest.approx(1 / 26, rel=0.1)
    begins = numpy.flatnonzero(lost[1:] & ~lost[:-1]).size
    assert lost.sum() / begins == pytest.approx(4.0, rel=0.1), "the mean length of a burst is 1 / 25 %"
    parts = trunkline.Loss("gilbert-elliott", to_bad="1 %", to_good="25 %", seed=2)
    assert numpy.array_equal(numpy.concatenate([parts.losses(times[:777]), parts.losses(times[777:])]), lost)
    with pytest.raises(trunkline.ExperimentError, match="time goes back"):
        parts.losses([5])
    with pytest.raises(trunkline.ExperimentError, match="probability"):
        trunkline.Loss("bernoulli")


def test_a_meter_gives_the_figures_of_a_run() -> None:
    meter = trunkline.Meter(transport="udp", source={"kind": "voice", "samples": 80}, duration="1 s")
    for sequence in range(100):
        sent = sequence * 10 * MS
        meter.sent(sent, sequence, 80)
        if sequence % 10 != 9:
            meter.received(sent + 20 * MS + sequence * 1000, sequence, 80, sent=sent)
    figures = meter.finish()
    assert figures["loss"] == pytest.approx(0.1)
    assert figures["latency_p50_s"] == pytest.approx(0.02005, abs=1e-5)
    assert figures["latency_max_s"] == pytest.approx(0.020098, abs=1e-6)
    with pytest.raises(trunkline.TrunklineError, match="finished"):
        meter.finish()


def test_the_names_of_a_meter_are_those_of_a_run(
    experiment: trunkline.Experiment, store: trunkline.Store
) -> None:
    meter = trunkline.Meter(transport="udp", source={"kind": "voice", "samples": 80}, duration="1 s")
    columns = experiment.sweep("flow.bulk.count", [0]).run(store=store).summary.column_names
    assert set(meter.finish()) <= set(columns)


def test_a_clock_s_offset_has_a_bound() -> None:
    clock = trunkline.ClockOffset()
    assert clock.at(0) is None
    # The other clock is 5 us ahead: 20 us there, 30 us back.
    assert clock.observe(0, 25_000, 26_000, 51_000) == "bound"
    offset = clock.at(51_000)
    assert offset is not None and abs(offset.estimate - 5_000) <= offset.bound < 25_100
    assert clock.observe(100_000, 99_000, 98_000, 110_000) == "impossible"
    with pytest.raises(trunkline.ExperimentError, match="ppm"):
        trunkline.ClockOffset(most_ppm=-1.0)
