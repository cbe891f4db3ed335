"""`python -m wenchang_conformance URL`."""

from __future__ import annotations

import sys

from wenchang_conformance.run import main

if __name__ == "__main__":
    sys.exit(main())
