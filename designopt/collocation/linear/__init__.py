"""A sparse symmetric linear solver in C, which IPOPT loads in place of MUMPS if there is a compiler."""
