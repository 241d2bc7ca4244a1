"""Lets a running command start its siblings with its own interpreter: `python -m regulars.cli`.

The analysis process begins without what the other commands are made of: when it was killed, whoever counts waits for
it to come back.
"""

import sys

if sys.argv[1:2] == ["analysis"]:
    from regulars.cli.analysis import main
else:
    from regulars.cli.main import main

main()
