"""A sparse symmetric linear solver of our own, in C, which IPOPT loads in place of MUMPS where a compiler is."""
