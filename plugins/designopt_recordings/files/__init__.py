"""Files of recordings: readers of TRC, MOT, STO, CSV and C3D; writers of TRC, MOT and STO."""
