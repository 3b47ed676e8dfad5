"""An exoskeleton whose links change their length, in the single support of recorded gait.

The paper on rods of variable length (Borisov 2015) prints no masses, motion or drives. What is here is a substitute of
the same model class: published anthropometry and a recorded gait.
"""
