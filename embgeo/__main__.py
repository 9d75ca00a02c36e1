"""The entry point of ``embgeo`` and ``python -m embgeo``."""

import atexit
import gc
import os
import sys

# numpy and scipy each bring a BLAS with its own threads. By default these spin for some hundredths
# of a second after a call, and slow down those of the other one.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Modules and figures are many small objects that live long, 300,000 of them at the end of a report:
# searching them for garbage after every 700 new ones takes 5% of its time, and at the end 8%.
gc.set_threshold(500_000, 20, 20)
atexit.register(gc.freeze)


def main() -> None:
    """Run the command line; an error while it starts ends with exit code 2, too.

    Python's own exit code of a broken installation is 1, which is that of a failed gate.
    """
    try:
        from embgeo.cli.app import main as run
    except KeyboardInterrupt:
        print("embgeo: interrupted; no result was written", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"embgeo: cannot start ({cause}); install it again", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
