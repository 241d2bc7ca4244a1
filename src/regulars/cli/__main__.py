"""Lets a running command start its siblings with its own interpreter: `python -m regulars.cli`."""

from regulars.cli.main import main

main()
