"""From a recording to joint loads: landmarks, raw coordinates, plates, and every step of a trial."""
