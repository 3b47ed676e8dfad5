"""A subject's body: rigid bodies with natural coordinates, their landmarks, masses and joints."""
