"""The models that study files name."""
