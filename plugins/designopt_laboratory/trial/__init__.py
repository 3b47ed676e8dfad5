"""The steps of a trial: files, poses, loads of feet, moments, muscle forces, joint reactions."""
