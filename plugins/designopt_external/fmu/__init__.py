"""A Functional Mock-up Unit (FMI 2.0 and 3.0) as a model."""
