"""The far end of a live run: started by the near end as ``python -m trunkline._far_end``."""

from trunkline import _trunkline

if __name__ == "__main__":
    _trunkline.far_end()
