"""Predicted walking: skeleton, muscles, contact and devices in one program, the motion and the device as the answer."""
