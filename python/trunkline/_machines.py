"""Machines of the simulator by themselves: protocol engines, links, sources, loss models, meters. They have no clock: every call has
the time as an argument, in whole nanoseconds that never decrease.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trunkline import _toml, _trunkline
from trunkline._parts import _whole
from trunkline._toml import Value

if TYPE_CHECKING:
    import numpy


def _keys(values: Mapping[str, Value]) -> dict[str, Value]:
    """Names of arguments as keys of a file: ``to_bad`` is ``to-bad``."""
    return {name.replace("_", "-"): value for name, value in values.items()}


def _table(kind: str, values: Mapping[str, Value]) -> str:
    """A kind with its values as an experiment file writes them."""
    return _toml.inline({"kind": kind} | _keys(values))


def _lines(values: Mapping[str, Value]) -> str:
    """Keys of a table, one on a line."""
    return "\n".join(f"{_toml.key(name)} = {_toml.inline(value)}" for name, value in _keys(values).items())


class Datagram(NamedTuple):
    """A packet that an endpoint sends."""

    packet: bytes
    """The transport's bytes: header and payload."""
    size: int
    """Bytes at the network layer, with its header."""
    ecn: int
    """The ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced."""
    earliest: int
    """The time before which it waits (pacing)."""


class Event(NamedTuple):
    """Something that has happened to a conversation."""

    kind: Literal["connected", "readable", "writable", "closed", "member"]
    reason: str
    """Why it is closed, or which member of a group it is about; empty otherwise."""


class Window(NamedTuple):
    """The state of a TCP connection."""

    congestion_window: int
    """Bytes; 0 without congestion control."""
    bytes_in_flight: int
    round_trip: float | None
    """The smoothed round trip in seconds; ``None`` before there was a sample."""


class Endpoint:
    """One end of a conversation, as :func:`endpoints` makes it: TCP, UDP, SCTP, DCCP, XTP, QUIC or another transport of experiment
    files.

    After every call that has a time, take what :meth:`transmit` gives, until it is ``None``. Then call :meth:`handle_timeout` when
    :attr:`next_timeout` has come.
    """

    def __init__(self, core: _trunkline.Endpoint) -> None:
        self._core = core

    def send(self, now: int, message: bytes, *, more: bool = False) -> bool:
        """Hands a message over. Returns ``False``, and takes nothing, if the send buffer is full; the event ``writable`` follows when
        it has room again.

        :param more: more of the same message follows.
        :raises ExperimentError: if the transport carries no message of this size.
        :raises TrunklineError: if the conversation is closed.
        """
        return self._core.send(now, message, more)

    def receive(self) -> bytes | None:
        """A message that has arrived, or everything of a byte stream that is there; ``None`` without any."""
        return self._core.receive()

    def handle_packet(self, now: int, packet: bytes, *, ecn: int = 0) -> None:
        """Takes a packet of the other end, with the ECN field that it has arrived with."""
        self._core.handle_packet(now, packet, ecn)

    def handle_timeout(self, now: int) -> None:
        """Does what is due. Calling later than asked for is allowed."""
        self._core.handle_timeout(now)

    def transmit(self, now: int) -> Datagram | None:
        """The next packet to send; ``None`` if there is none."""
        sent = self._core.poll_transmit(now)
        return None if sent is None else Datagram(*sent)

    @property
    def next_timeout(self) -> int | None:
        """The time at which :meth:`handle_timeout` is due; ``None`` if nothing is."""
        return self._core.next_timeout

    def events(self) -> list[Event]:
        """Events since the last call, in their order."""
        events: list[Event] = []
        while (event := self._core.poll_event()) is not None:
            events.append(Event(*event))
        return events

    def close(self, now: int, *, abort: bool = False) -> None:
        """Ends the conversation, after what was taken is delivered; with ``abort`` at once."""
        self._core.close(now, abort)

    @property
    def counters(self) -> dict[str, int]:
        """Counters of the engine, such as retransmissions and checksum errors."""
        return dict(self._core.counters())

    @property
    def window(self) -> Window | None:
        """Congestion window and round trip of a TCP connection; ``None`` for other transports."""
        window = self._core.window
        return None if window is None else Window(*window)


def endpoints(kind: str, /, *, mtu: int = 1500, seed: int = 0, **options: Value) -> tuple[Endpoint, Endpoint]:
    """Both ends of a conversation over a transport of experiment files, with its options: ``endpoints("tcp", window="64 KiB")``. The
    first end opens the conversation.

    :param mtu: the largest packet that the path carries, in bytes at the network layer.
    :param seed: of random numbers, such as initial sequence numbers.
    :raises ExperimentError: with the sentence of the command line, for an unknown transport or option.
    """
    near, far = _trunkline.endpoints(_table(kind, options), mtu, seed)
    return Endpoint(near), Endpoint(far)


class Arrival(NamedTuple):
    """A packet that comes out of a link."""

    time: int
    """May lie in the future: once a packet's transmission has begun, its arrival is known."""
    id: int
    end: int
    """The end at which it comes out."""
    packet: bytes
    size: int
    flow: int
    ecn: int
    """The ECN field: 3 if a queue has marked it."""


class Drop(NamedTuple):
    """A packet that a link has dropped."""

    time: int
    id: int
    cause: str
    """``queue-full``, ``link-loss`` and the like."""


class Link:
    """A link as experiment files have it, with its medium, rate, delay, queues, losses and other impairments::

        link = trunkline.Link(rate="10 Mbit/s", delay="20 ms", queue={"kind": "fq-codel"}, loss="1 %")

    Its ends are 0 and 1.

    :raises ExperimentError: with the sentence of the command line, for an unknown key or value.
    """

    def __init__(self, *, seed: int = 0, **keys: Value) -> None:
        self._core = _trunkline.Link(_lines(keys), seed)
        self._next = 0

    def offer(
        self,
        now: int,
        size: int,
        *,
        end: int = 0,
        packet: bytes = b"",
        flow: int = 0,
        ecn: int = 0,
        id: int | None = None,
    ) -> tuple[list[Arrival], list[Drop]]:
        """Offers a packet of ``size`` bytes at the network layer at an end, after everything that is due. Returns the packets whose
        arrival is known by it, not sorted by time, and those that were dropped. Without ``id``, packets are numbered from 0.
        """
        number = self._next if id is None else id
        self._next = max(self._next, number + 1)
        return _happened(self._core.offer(now, number, size, end, packet, flow, ecn))

    def advance(self, now: int) -> tuple[list[Arrival], list[Drop]]:
        """Does everything that is due. Returns arrivals and drops, as :meth:`offer` does."""
        return _happened(self._core.advance(now))

    @property
    def next_event(self) -> int | None:
        """The time at which :meth:`advance` has something to do, if nothing is offered until then."""
        return self._core.next_event

    def backlog(self, end: int = 0) -> tuple[int, int]:
        """Packets and bytes that wait at an end."""
        return self._core.backlog(end)


def _happened(
    happened: tuple[list[tuple[int, int, int, bytes, int, int, int]], list[tuple[int, int, str]]],
) -> tuple[list[Arrival], list[Drop]]:
    arrivals, drops = happened
    return [Arrival(*of) for of in arrivals], [Drop(*of) for of in drops]


class Message(NamedTuple):
    """A message of a source."""

    due: int
    size: int
    channel: int
    asks: bool
    """True if it asks for an answer."""


class Source:
    """A source of messages as experiment files name it: ``Source("voice", samples=80, duration="10 s")``.

    :param channels: each is a source of its own.
    :param duration: nothing is due at or after this.
    :param seed: of random numbers, such as pauses of speech.
    :raises ExperimentError: with the sentence of the command line, for an unknown kind or value.
    """

    def __init__(
        self, kind: str, /, *, channels: int = 1, duration: str = "10 s", seed: int = 0, **values: Value
    ) -> None:
        self._core = _trunkline.Source(_table(kind, values), channels, _toml.inline(duration), seed)

    @property
    def next_due(self) -> int | None:
        """The time of the next message; ``None`` while the source waits for an answer, or when it is finished."""
        return self._core.next_due

    @property
    def is_finished(self) -> bool:
        """True if nothing will ever be due again."""
        return self._core.is_finished

    def produce(self, now: int) -> list[Message]:
        """The messages that are due. A source without a pace of its own (``bulk``) gives some each time, as often as its transport
        takes them.
        """
        return [Message(*message) for message in self._core.produce(now)]

    def writable(self, now: int) -> None:
        """The transport takes messages again, after it has refused one."""
        self._core.writable(now)

    def answered(self, now: int, sequence: int, *, channel: int = 0) -> None:
        """The answer to a message has come back. Messages of a channel are counted from 0."""
        self._core.answered(now, channel, sequence)

    def schedule(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """All messages that are left, as arrays: due times in nanoseconds, bytes, and channels.

        :raises ExperimentError: of a source that waits for answers or for its transport.
        """
        import numpy

        times, sizes, channels = self._core.schedule()
        kinds = ((times, numpy.uint64), (sizes, numpy.uint32), (channels, numpy.uint16))
        due, size, channel = (numpy.frombuffer(of, kind) for of, kind in kinds)
        return due, size, channel


class Loss:
    """A loss model as experiment files name it: ``Loss("gilbert-elliott", to_bad="1 %", to_good="25 %")``.

    :raises ExperimentError: with the sentence of the command line, for an unknown kind or value.
    """

    def __init__(self, kind: str, /, *, seed: int = 0, **values: Value) -> None:
        self._core = _trunkline.Loss(_table(kind, values), seed)

    def losses(self, times: Any) -> numpy.ndarray:
        """Of packets at these times, in nanoseconds: true for those that are lost. Another call goes on where this one ends."""
        import numpy

        lost: numpy.ndarray = numpy.frombuffer(
            self._core.losses(_whole("times", times, numpy.uint64).tobytes()), numpy.bool_
        )
        return lost


class Meter:
    """The figures of a flow from what was sent and received. ``keys`` are those of a flow in experiment files::

        meter = trunkline.Meter(transport="udp", source={"kind": "voice", "samples": 80}, playout="60 ms", duration="10 s")

    Times are nanoseconds since the begin of the measurement. Messages of a channel are counted from 0.

    :param duration: length of the measurement; what arrives later counts in no throughput.
    :param drain: time after it in which messages still arrive.
    :raises ExperimentError: with the sentence of the command line, for an unknown key or value.
    """

    def __init__(self, *, duration: str, drain: str = "1 s", **keys: Value) -> None:
        self._core = _trunkline.Meter(_lines(keys), _toml.inline(duration), _toml.inline(drain))

    def sent(
        self, time: int, sequence: int, size: int, *, due: int | None = None, channel: int = 0
    ) -> None:
        """A message of ``size`` bytes was sent; ``due`` is when its source wanted that, if it was earlier."""
        self._core.sent(time, sequence, size, time if due is None else due, channel)

    def refused(
        self, time: int, sequence: int, size: int, *, due: int | None = None, channel: int = 0
    ) -> None:
        """A message was given up by its sender."""
        self._core.refused(time, sequence, size, time if due is None else due, channel)

    def received(self, time: int, sequence: int, size: int, *, sent: int, channel: int = 0) -> None:
        """A message has arrived that was sent at the time ``sent``, as its header says."""
        self._core.received(time, sequence, size, sent, channel)

    def finish(self) -> dict[str, float | None]:
        """Ends the measurement. Returns every figure of the flow in base units, by the names of ``Run.summary``; ``None`` for those
        that were not measured. What has not arrived is lost.
        """
        return dict(self._core.finish())


class Offset(NamedTuple):
    """The offset of another host's clock: its time minus the own."""

    estimate: int
    """Nanoseconds: the middle of what is possible."""
    bound: int
    """It is no further from the truth than this."""


class ClockOffset:
    """The offset of another host's clock, from requests for its time and their replies. The bounds hold whatever the network does.

    :param most_ppm: by how much the rates of the clocks may differ, in parts per million; two free crystals unless told otherwise.
    """

    def __init__(self, *, most_ppm: float | None = None) -> None:
        self._core = _trunkline.ClockOffset(most_ppm)

    def observe(
        self, sent: int, received: int, replied: int, returned: int
    ) -> Literal["bound", "step", "impossible"]:
        """Takes an exchange: ``sent`` and ``returned`` on the own clock, ``received`` and ``replied`` on the other. Returns what it has
        shown: a bound, that a clock has stepped, or nothing, because no clocks give these times.
        """
        return self._core.observe(sent, received, replied, returned)

    def at(self, time: int) -> Offset | None:
        """The offset at a time of the own clock; ``None`` while nothing was observed."""
        offset = self._core.at(time)
        return None if offset is None else Offset(*offset)
