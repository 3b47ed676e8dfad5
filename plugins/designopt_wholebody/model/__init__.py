"""The model as data: segments, landmarks, frames, joints and inertia, read from a file."""
