"""Terrace under vLLM: `terrace.vllm.tier.TerraceTier` is a secondary tier of vLLM's native offloading, and
`terrace.vllm.connector.TerraceConnector` a connector without vLLM's host pool.

Only `terrace.vllm.tier`, `terrace.vllm.plugin`, `terrace.vllm.connector` and `terrace.vllm.metrics` import vLLM,
and `terrace.vllm.torch_kv_mover` and `terrace.vllm.make_staging` import PyTorch. docs/engines/vllm.md explains the
use.
"""
