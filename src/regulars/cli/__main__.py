"""`python -m regulars.cli`: how a running command starts other commands with its own interpreter.

The analysis process imports no other command: after a crash, requests for counts wait until it has started again.
"""

import sys

if sys.argv[1:2] == ["analysis"]:
    from regulars.cli.analysis import main
else:
    from regulars.cli.main import main

main()
