"""Runs the command line interface as ``python -m sluice``."""

import sys

from sluice.cli.main import main

sys.exit(main())
