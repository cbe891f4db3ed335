"""`python -m wenchang`: the command line, for interpreters whose scripts are not on the path."""

from __future__ import annotations

import sys

from wenchang.cli import main

if __name__ == "__main__":
    sys.exit(main())
