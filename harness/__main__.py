"""`python -m harness`."""

import sys
from io import TextIOWrapper

from harness.commands.app import app
from harness.commands.shared.terminal import spelled_out

for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, TextIOWrapper):  # what a terminal without UTF-8 cannot show is no reason to end
        stream.reconfigure(errors="replace")
app(args=spelled_out(sys.argv[1:]))
