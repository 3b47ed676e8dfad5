"""An exoskeleton with links of variable length, in the single support of recorded gait.

The paper on rods of variable length (Borisov 2015) prints no masses, motion or drives. The values here are a substitute
of the same model class: published anthropometry and a recorded gait.
"""
