"""Models for studies: preprocessing, model or exercise as the design."""
