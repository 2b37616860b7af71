"""Parts of the simulator by themselves, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline import _toml, _trunkline
from trunkline._errors import ExperimentError
from trunkline._toml import Value

if TYPE_CHECKING:
    import numpy


class Packet(NamedTuple):
    """A packet that leaves a queue."""

    id: int
    size: int
    """Bytes at the network layer."""
    flow: int
    marked: bool
    """True if the queue has marked congestion (ECN)."""


class NotBefore(NamedTuple):
    """A packet waits, but may not leave before this time."""

    time: int


class Queue:
    """A queue as experiment files name it: ``Queue("fq-codel", limit="1000 packets", target="5 ms")``.

    Times are whole nanoseconds that never decrease. A queue has no clock and no line: it decides which packet leaves when it
    is asked.

    :raises ExperimentError: with the sentence of the command line, for an unknown kind or value.
    """

    def __init__(self, kind: str, /, *, seed: int = 0, **values: Value) -> None:
        table = {"kind": kind} | {name.replace("_", "-"): value for name, value in values.items()}
        self._core = _trunkline.Queue(_toml.inline(table), seed)
        self._next = 0

    def enqueue(
        self, now: int, size: int, *, flow: int = 0, ecn: bool = False, id: int | None = None
    ) -> list[int]:
        """Offers a packet. Returns the numbers of the packets that were dropped for it, perhaps its own. Without ``id``,
        packets are numbered from 0.
        """
        number = self._next if id is None else id
        self._next = max(self._next, number + 1)
        return self._core.enqueue(now, number, size, flow, ecn)

    def dequeue(self, now: int) -> Packet | NotBefore | None:
        """The packet that leaves now; ``None`` if nothing waits."""
        packet, time = self._core.dequeue(now)
        if packet is not None:
            return Packet(*packet)
        return None if time is None else NotBefore(time)

    def transmit(
        self, arrivals: Any, sizes: Any, flows: Any = 0, *, rate: float, ecn: bool = False
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Sends arrays of packets through the queue onto a line of ``rate`` bits per second: arrival times in nanoseconds,
        bytes, and flows. Returns the time at which each has been transmitted, -1 for a dropped one, and whether it was
        marked. The queue is empty again afterwards.
        """
        import numpy

        times = _whole("arrivals", arrivals, numpy.uint64)
        size, flow = (
            numpy.ascontiguousarray(numpy.broadcast_to(_whole(name, part, numpy.uint32), times.shape)).tobytes()
            for name, part in (("sizes", sizes), ("flows", flows))
        )
        departures, marks = self._core.transmit(times.tobytes(), size, flow, rate, ecn)
        return numpy.frombuffer(departures, numpy.int64), numpy.frombuffer(marks, numpy.bool_)

    @property
    def backlog(self) -> tuple[int, int]:
        """Packets and bytes that wait."""
        return self._core.backlog

    @property
    def dropped(self) -> int:
        """Packets that were dropped until now."""
        return self._core.dropped

    @property
    def marked(self) -> int:
        """Packets that were marked until now."""
        return self._core.marked


def _whole(name: str, values: Any, kind: type[numpy.unsignedinteger[Any]]) -> numpy.ndarray:
    """Values as whole numbers of a type; refuses those that it does not have, which numpy would change."""
    import numpy

    given = numpy.asarray(values)
    with numpy.errstate(invalid="ignore"):
        whole: numpy.ndarray = given.astype(kind)
    if not numpy.array_equal(given, whole):
        raise ExperimentError(f"`{name}` must be whole numbers from 0 to {numpy.iinfo(kind).max}")
    return whole


class Rating(NamedTuple):
    """How a call is rated."""

    r: float
    """The transmission rating."""
    mos: float
    """The mean opinion score that corresponds to it."""


def e_model(delay: float, loss: float = 0.0, *, codec: str = "g711", burst_ratio: float = 1.0) -> Rating:
    """Rates a call by the E-model (ITU-T G.107).

    :param delay: one-way delay from mouth to ear, in seconds.
    :param loss: share of packets that are lost or late.
    :param codec: a codec of experiment files.
    :param burst_ratio: 1 for random loss, more for loss in bursts.
    """
    return Rating(*_trunkline.e_model(delay, loss, codec, burst_ratio))
