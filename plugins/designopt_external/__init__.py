"""Models whose code is outside Python: external programs, FMUs, MuJoCo.

The user allows what a study may run, by name (`designopt.plugin.permission`).
"""
