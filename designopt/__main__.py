"""Run the command line with ``python -m designopt``."""

from designopt.cli import main

main(prog_name="designopt")
