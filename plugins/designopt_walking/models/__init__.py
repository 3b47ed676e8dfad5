"""Models for studies: predicted and tracked walks, standing up from a squat."""
