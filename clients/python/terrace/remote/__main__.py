"""Hosts a plugin for the daemon, which starts it: `python3 -m terrace.remote NAME [OPTIONS]`."""

from .host import main

main()
