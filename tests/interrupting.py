"""A request to stop that arrives where CasADi loses what is raised."""

import os
import signal

import casadi as ca


class Interrupting(ca.MX):
    """What CasADi asks for its shape, and is interrupted then, once."""

    interrupted = False

    @property
    def shape(self):
        if not self.interrupted:
            self.interrupted = True
            os.kill(os.getpid(), signal.SIGINT)
        return (1, 1)
