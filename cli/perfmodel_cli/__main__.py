"""`python -m perfmodel_cli` is `perfmodel`."""

from perfmodel_cli.app import main

main()
