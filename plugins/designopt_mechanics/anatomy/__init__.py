"""Bones, muscles, tendons and ligaments as wires, with virtual links where they branch.

After the Japanese patent application 2002-154853 (Nakamura, Yamane, Suzuki, Kurihara; US 7,490,012): geometry in a
subset of VRML97 with naming rules, joints, masses and laws in a companion YAML file. Virtual links are frames without
mass whose pose makes the resultant of their wires zero.
"""
