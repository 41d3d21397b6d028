"""Terrace under SGLang: `terrace.sglang.hicache.TerraceHiCache` is a storage backend of SGLang's HiCache.

Only `terrace.sglang.hicache` imports SGLang. docs/engines/sglang.md explains the use.
"""
