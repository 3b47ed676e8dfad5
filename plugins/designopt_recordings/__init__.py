"""Laboratory recordings: markers, force plates, analog channels and tables, read, checked and prepared.

No mechanics: segments, coordinates and muscles belong to the packages that import this one.
"""
