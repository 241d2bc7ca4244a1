"""The entry point of `python -m regulars.cli`, with which a running command starts its child processes.

The analysis process, which counts segments, imports no other command, so that it starts quickly: after a crash,
requests for counts wait until it runs again.
"""

import sys

if sys.argv[1:2] == ["analysis"]:
    from regulars.cli.analysis import main
else:
    from regulars.cli.main import main

main()
