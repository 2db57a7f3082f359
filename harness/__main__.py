"""`python -m harness`."""

import sys

from harness.cli import app
from harness.terminal import spelled_out

app(args=spelled_out(sys.argv[1:]))
