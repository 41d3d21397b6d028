"""The environment of an engine under test."""

# One thread, one process, nothing from or to the network.
QUIET = {
    "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "LMCACHE_DISABLE_BANNER": "1", "LMCACHE_TRACK_USAGE": "false",
    "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1",
}
