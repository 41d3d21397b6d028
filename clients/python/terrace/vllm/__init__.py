"""Terrace under vLLM: `terrace.vllm.tier.TerraceTier` is a secondary tier of vLLM's native offloading.

Only `terrace.vllm.tier` and `terrace.vllm.plugin` import vLLM. docs/engines/vllm.md explains the use.
"""
