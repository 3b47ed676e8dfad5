"""``python -m designopt`` is the command line."""

from designopt.cli import main

main(prog_name="designopt")
