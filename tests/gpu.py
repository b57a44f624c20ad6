"""Everything that wants a GPU, in one command: `python tests/gpu.py`, or `make gpu`.

It needs the checkout and Python with the packages that tgraph and CuPy need; tgraph itself and
pytest need not be installed. See benchmarks/README.md.
"""

import sys

from gpu_run.command import main

if __name__ == "__main__":
    sys.exit(main())
