"""`python -m spanloop`: the command spanloop."""

import sys

from spanloop.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
