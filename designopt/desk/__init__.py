"""The desk: one page on this machine that shows all stores below a folder, and optionally starts and stops runs.

`server.serve` answers the browser; `folder` finds stores and studies; `views` computes their views, in separate
processes; `runs` starts and stops runs, which are independent of the desk; `access` and `entrance` control who is
answered.
"""
