"""An external program as a model: input files from templates, results from its files and printed text."""
