"""The desk: one page on this machine that shows all stores below a folder, and with leave starts and stops runs.

`server.serve` answers the browser; `folder` finds stores and studies; `views` makes what is shown of them, in processes
of their own; `runs` starts and stops runs, which do not depend on the desk; `access` says who is answered.
"""
