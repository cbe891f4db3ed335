"""What `dev.py` is made of: environments, servers, tests, checks, docs and releases.

Standard library only, Python 3.11 or newer; `dev.py` itself parses on older versions to say so.
"""
