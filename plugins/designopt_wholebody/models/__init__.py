"""Models for studies: what a design of preprocessing, model or exercise gives."""
