"""`python -m spanloop`: the command spanloop."""

import sys

from spanloop.cli.main import main

sys.exit(main())
