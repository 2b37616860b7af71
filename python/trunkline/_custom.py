"""Sources and loss models of one's own: calls their functions, and checks what they give."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from trunkline._errors import ExperimentError

if TYPE_CHECKING:
    import numpy

SourceFunction = Callable[["numpy.random.Generator"], Iterable[tuple[Any, Any]]]
"""Called with a generator of random numbers for each channel; gives batches of messages: arrays of the seconds since the message
before (or since the start), and of the sizes in bytes. An array of one element counts for all of the other.
"""

LossFunction = Callable[["numpy.random.Generator"], Iterable[Any]]
"""Called with a generator of random numbers for each direction; gives batches of losses without end: arrays with true for each
packet that is lost.
"""

_LONGEST = 1e9
"""Seconds between two messages at most."""


def messages(function: SourceFunction, seed: int, largest: int) -> Iterator[tuple[bytes, bytes]]:
    """The messages of a channel: nanoseconds after the message before, and sizes."""
    import numpy

    for batch in function(numpy.random.default_rng(seed)):
        try:
            intervals, sizes = numpy.broadcast_arrays(*(numpy.atleast_1d(numpy.asarray(of)) for of in batch))
        except (TypeError, ValueError) as error:
            raise ExperimentError("a batch must be two arrays of one length: seconds, and sizes in bytes") from error
        _check_batch(intervals)
        # Compared so that nan is refused too.
        if not ((intervals >= 0) & (intervals <= _LONGEST)).all():
            raise ExperimentError(f"seconds between messages must be 0 to {_LONGEST:.0e}")
        if not ((sizes >= 1) & (sizes <= largest)).all():
            raise ExperimentError(f"a message has {_outside(sizes, largest)} B; expected 1 B to {largest} B (`largest`)")
        yield (intervals * 1e9).round().astype(numpy.uint64).tobytes(), sizes.astype(numpy.uint32).tobytes()


def losses(function: LossFunction, seed: int, largest: int) -> Iterator[bytes]:
    """The losses of a direction: a byte for each packet."""
    import numpy

    del largest
    for batch in function(numpy.random.default_rng(seed)):
        lost = numpy.atleast_1d(numpy.asarray(batch))
        _check_batch(lost)
        if lost.dtype != numpy.bool_:
            raise ExperimentError(f"losses must be true or false, not {lost.dtype}")
        yield lost.tobytes()
    raise ExperimentError("the function has no more losses; expected batches without end")


def _check_batch(array: Any) -> None:
    if array.ndim != 1 or not array.size:
        raise ExperimentError(f"a batch must be a list or an array with elements, not of the shape {array.shape}")


def _outside(sizes: Any, largest: int) -> Any:
    """The first size that is not 1 to ``largest``."""
    return next(size for size in sizes.tolist() if not 1 <= size <= largest)


def pickled(functions: dict[str, Any]) -> bytes:
    """Functions as they travel to workers: also those of a notebook, if cloudpickle is installed (Dask brings it)."""
    if not functions:
        return b""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        packed: bytes = pickler.dumps(functions)
    except Exception as error:
        names = ", ".join(functions)
        raise ExperimentError(f"the functions of {names} cannot be sent to workers ({error}); install cloudpickle") from error
    return packed


def unpickled(functions: bytes) -> dict[str, Any]:
    """The functions of :func:`pickled`."""
    of: dict[str, Any] = pickle.loads(functions) if functions else {}
    return of
