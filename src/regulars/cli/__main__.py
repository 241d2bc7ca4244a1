"""`python -m regulars.cli`: a running command starts other commands this way, with its own interpreter.

The analysis process imports no other command, so that it starts quickly: after a crash, requests for counts wait until
it runs again.
"""

import sys

if sys.argv[1:2] == ["analysis"]:
    from regulars.cli.analysis import main
else:
    from regulars.cli.main import main

main()
