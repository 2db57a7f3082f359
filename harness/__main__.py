"""`python -m harness`."""

import signal
import sys
from io import TextIOWrapper


def main() -> None:
    heeded = signal.getsignal(signal.SIGINT)
    if heeded is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is there yet that an interruption could leave behind
    from harness.commands.app import app_of
    from harness.commands.shared.terminal import spelled_out
    from harness.execute.isolation import signals

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what a terminal without UTF-8 cannot show is no reason to end
            stream.reconfigure(errors="replace")
    app = app_of(next(iter(sys.argv[1:]), ""))
    signal.signal(signal.SIGINT, heeded)
    signals.heed()
    try:
        app(args=spelled_out(sys.argv[1:]))
    except KeyboardInterrupt as stop:  # before Typer heeds it
        sys.exit(signals.status_of(stop))
    except SystemExit as end:  # Typer's status of an interruption is 1, which means that something disagrees
        stop = end.__context__.__cause__ if end.__context__ else None
        sys.exit(signals.status_of(stop) if isinstance(stop, KeyboardInterrupt) else end.code)


if __name__ == "__main__":
    main()
