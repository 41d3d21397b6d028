"""Terrace under LMCache's server: `terrace.lmcache.connector.TerraceConnector` is a native plugin of its second level
(L2).

Nothing here imports LMCache. docs/engines/lmcache.md explains the use.
"""
