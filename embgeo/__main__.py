"""``python -m embgeo``: the command line."""

from embgeo.cli.app import main

main()
