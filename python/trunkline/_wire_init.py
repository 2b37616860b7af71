"""The first process of a wire's host: started by a run as ``python -m trunkline._wire_init``."""

from trunkline import _trunkline

if __name__ == "__main__":
    _trunkline.wire_init()
