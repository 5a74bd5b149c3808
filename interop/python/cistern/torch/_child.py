"""Run by a child of multiprocessing: see _children.py. PATHS is its parent's sys.path, MODE its mode."""

import sys
from pathlib import Path

sys.path = [*globals()["PATHS"], str(Path(__file__).parents[2])]  # the child sets it after this
try:
    from cistern.torch import _children
except ImportError:  # of another Python's: it runs as it would have
    pass
else:
    _children.begin(globals()["MODE"])
