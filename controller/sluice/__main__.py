"""``python -m sluice``."""

import sys

from .cli import main

sys.exit(main())
