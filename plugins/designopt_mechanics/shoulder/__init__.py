"""The shoulder girdle with its rhythm: clavicle and scapula follow the humerus."""
