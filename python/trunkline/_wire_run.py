"""A run on the wire: started by :mod:`trunkline._wire` as ``python -m trunkline._wire_run``. It measures, because making namespaces
needs a process with a single thread, which a notebook is not, and would change the user of the process that makes them.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys

from trunkline import _trunkline


def main() -> None:
    """Reads a request from standard input, and writes progress and the end to standard output."""
    # Even if the process that started this one ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = pickle.load(sys.stdin.buffer)
    # Nothing else writes to the pipe.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def reply(kind: str, value: object) -> None:
        pickle.dump((kind, value), replies)
        replies.flush()

    try:
        _trunkline.enter_wire()
        store = _trunkline.Store(request["store"])

        # Without a reader it raises, which ends the run.
        def show(*done: float) -> None:
            reply("progress", done)

        if "resume" in request:
            ran = _trunkline.resume(store, request["resume"], request["jobs"], show)
        else:
            experiment = _trunkline.Experiment(*request["experiment"])
            ran = _trunkline.run(experiment, store, "wire", request["jobs"], show)
        reply("ended", ran)
    except BrokenPipeError:
        pass
    except BaseException as error:
        reply("raised", error)


if __name__ == "__main__":
    main()
