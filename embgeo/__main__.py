"""Where the program starts: ``embgeo`` and ``python -m embgeo``."""

import gc
import os
import sys

# numpy and scipy each bring a BLAS with threads of its own. By default these stay awake for some
# hundredths of a second after a call and keep the other's from working.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Modules and figures are many small objects that stay: looking for garbage among them after every
# 700 new ones takes a fortieth of a report.
gc.set_threshold(50_000, 20, 20)


def main() -> None:
    """Run the command line; what keeps it from starting ends with 2 like any other error.

    Python's own exit code of a broken installation is 1, that of a gate which a rule failed.
    """
    try:
        from embgeo.cli.app import main as run
    except KeyboardInterrupt:
        print("embgeo: interrupted; nothing new was written", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"embgeo: cannot start ({cause}); install it again", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
