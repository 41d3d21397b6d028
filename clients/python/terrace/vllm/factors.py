"""The vLLM configuration that affects the KV of given tokens, besides the files of the model.

`USED` and `IGNORED` together name every field of every part of vLLM's configuration; a test compares them with the
supported versions, so that a new field is examined before KV is shared across it.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..weights import Identity, Unidentified, Weights, loaded_identity_of, process_identity

# Used fields by part of the configuration. A field that a version does not have is left out there.
USED: dict[str, tuple[str, ...]] = {
    "model_config": (
        "dtype", "quantization", "quantization_config", "code_revision", "config_format", "model_impl", "runner", "convert",
        "hf_overrides", "model_class_overrides", "disable_sliding_window", "rope_scaling", "rope_theta",
        "override_attention_dtype", "is_submodel_config", "enable_prompt_embeds",
    ),
    "model_config.multimodal_config": (
        "mm_processor_kwargs", "mm_device_do_normalize", "mm_encoder_attn_dtype", "mm_encoder_fp8_scale_path",
        "mm_encoder_attn_backend", "video_pruning_rate", "video_pruning_method", "interleave_mm_strings",
    ),
    "cache_config": (
        "cache_dtype", "sliding_window", "kv_cache_dtype_skip_layers", "mamba_cache_dtype", "mamba_ssm_cache_dtype",
        "mamba_cache_mode", "mamba_block_size", "use_replayssm", "replayssm_buffer_len", "use_kda_recoverssm",
        "kv_sharing_fast_prefill", "swa_bounded_replay",
    ),
    "mamba_config": ("backend", "enable_stochastic_rounding", "stochastic_rounding_philox_rounds", "ssu_algorithm"),
    "parallel_config": (
        "pipeline_parallel_size", "tensor_parallel_size", "prefill_context_parallel_size", "decode_context_parallel_size",
        "dcp_kv_cache_interleave_size", "cp_kv_cache_interleave_size", "enable_hc_sp",
    ),
    "attention_config": (
        "backend", "backend_per_kind", "flash_attn_version", "minimax_m3_msa_decode_backend", "use_trtllm_attention",
        "disable_flashinfer_q_quantization", "mla_prefill_backend", "use_prefill_query_quantization", "indexer_kv_dtype",
        "use_non_causal", "sparse_mla_force_mqa", "hisparse_config", "use_cudnn_prefill", "use_trtllm_ragged_deepseek_prefill",
        "disable_flashinfer_prefill", "use_fp4_indexer_cache", "trtllm_ragged_backend",
    ),
    "speculative_config": (
        "method", "quantization", "kv_cache_dtype", "attention_backend", "draft_tensor_parallel_size", "parallel_drafting",
        "code_revision", "index_share_for_mtp_iteration", "use_heterogeneous_vocab", "disable_lookahead_block_hashes",
    ),
    "load_config": ("load_format", "model_loader_extra_config", "ignore_patterns"),
    "diffusion_config": ("canvas_length", "max_denoising_steps"),
    "": ("additional_config",),
}
# Used for engines with adapters: part of an adapter's own identity, since they do not affect the model's KV without
# one.
USED_WITH_ADAPTERS = (
    "lora_dtype", "target_modules", "enable_tower_connector_lora", "enable_mixed_moe_lora_format", "enable_moe_shared_loras",
    "lora_extra_vocab_size", "bias_enabled",
)
VARIABLES = (
    "VLLM_KV_CACHE_LAYOUT", "VLLM_ATTENTION_BACKEND", "VLLM_MLA_DISABLE", "VLLM_MARLIN_INPUT_DTYPE",
    "VLLM_HUMMING_INPUT_QUANT_CONFIG", "VLLM_HUMMING_ONLINE_QUANT_CONFIG", "VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT",
)

_FILES = "the content of the files behind it is part of the revision"
_PLACE = "where things are kept and who computes them, not what"
_ROUNDING = "how a number is rounded at most, as the batch that it is computed in"
_INPUT = "what tokens there are, which the keys name"
_OUTPUT = "what becomes of the results"
_SCHEDULE = "when something is computed"
_SHAPE = "the plan of the blocks has it"
_LAUNCH = "how processes are started and find each other"

# The reason why a field is left out, by part of the configuration.
IGNORED: dict[str, dict[str, tuple[str, ...]]] = {
    "model_config": {
        _FILES: ("model", "model_weights", "revision", "hf_config", "hf_text_config", "hf_config_path",
                 "word_embeddings_untied_by_checkpoint", "trust_remote_code", "allow_deprecated_quantization"),
        _INPUT: ("tokenizer", "tokenizer_mode", "tokenizer_revision", "skip_tokenizer_init", "allowed_local_media_path",
                 "allowed_media_domains", "io_processor_plugin", "renderer_num_workers"),
        _OUTPUT: ("seed", "max_logprobs", "logprobs_mode", "use_fp64_gumbel", "return_sampling_mask", "generation_config",
                  "override_generation_config", "logits_processors", "served_model_name", "pooler_config", "hf_token"),
        _ROUNDING: ("enforce_eager", "disable_cascade_attn", "enable_trace_replay"),
        _PLACE: ("enable_sleep_mode", "sleep_preserve_parameter_names", "sleep_mode_backend", "sleep_mode_offload_cudagraph",
                 "enable_nccl_comm_suspend", "enable_cumem_allocator"),
        "a longer model computes the same KV, but for the rotary embeddings that `_long_rope` looks at":
            ("max_model_len", "spec_target_max_model_len"),
        "its fields are a part of their own": ("multimodal_config",),
    },
    "model_config.multimodal_config": {
        _INPUT: ("limit_per_prompt", "enable_mm_embeds", "media_io_kwargs", "mm_hasher_algorithm", "allow_missing_mm_embeddings"),
        _PLACE: ("mm_processor_cache_gb", "mm_processor_cache_type", "mm_shm_cache_max_object_size_mb", "mm_encoder_tp_mode",
                 "mm_tensor_ipc", "mm_ipc_gpu_memory_gb", "skip_mm_profiling", "mm_processor_device"),
        _OUTPUT: ("language_model_only", "mm_encoder_only", "mm_encoder_fp8_scale_save_path", "mm_encoder_fp8_scale_save_margin"),
    },
    "cache_config": {
        _SHAPE: ("block_size", "user_specified_block_size", "_block_size_resolved", "kv_cache_layout", "hash_block_size",
                 "prefix_match_unit", "mamba_page_size_padded", "skip_page_size_padded", "is_attention_free",
                 "effective_attention_block_size", "cache_hit_alignment_tokens"),
        _PLACE: ("gpu_memory_utilization", "num_gpu_blocks_override", "num_gpu_blocks", "num_cpu_blocks", "kv_cache_size_tokens",
                 "kv_cache_max_concurrency", "kv_cache_memory_bytes", "kv_offloading_size", "kv_offloading_backend",
                 "simple_cpu_offload_num_blocks"),
        _SCHEDULE: ("enable_prefix_caching", "prefix_cache_retention_interval", "enable_mamba_shared_prefix_checkpoint"),
        "its digests are the keys": ("prefix_caching_hash_algo",),
    },
    "mamba_config": {},
    "parallel_config": {
        _LAUNCH: ("data_parallel_master_ip", "data_parallel_rpc_port", "data_parallel_master_port", "data_parallel_backend",
                  "data_parallel_external_lb", "data_parallel_hybrid_lb", "max_parallel_loading_workers",
                  "ray_workers_use_nsight", "ray_runtime_env", "placement_group", "distributed_executor_backend", "worker_cls",
                  "worker_extension_cls", "master_addr", "master_port", "node_rank", "nnodes", "distributed_timeout_seconds",
                  "cpu_distributed_timeout_seconds", "_data_parallel_master_port_list", "_coord_store_port",
                  "_api_process_count", "_api_process_rank", "enable_fault_tolerance", "fault_tolerance_config",
                  "_allow_auto_resolve_cp_interleave_size"),
        _PLACE: ("data_parallel_size", "data_parallel_size_local", "data_parallel_rank", "data_parallel_rank_local",
                 "data_parallel_index", "dp_sync_interval", "numa_bind", "numa_bind_nodes", "numa_bind_cpus",
                 "assigned_physical_gpu_ids", "enable_ep_weight_filter", "enable_eplb", "eplb_config",
                 "expert_placement_strategy", "enable_elastic_ep", "elastic_ep_max_dp_size", "enable_shm_tensor_arena"),
        _ROUNDING: ("is_moe_model", "enable_expert_parallel", "all2all_backend", "disable_custom_all_reduce", "enable_dbo",
                    "ubatch_size", "dbo_decode_token_threshold", "dbo_prefill_token_threshold",
                    "disable_nccl_for_dp_synchronization", "dcp_comm_backend", "dcp_q_replicate"),
        _OUTPUT: ("enable_batch_sharded_sampling",),
        "the space has it": ("world_size", "rank"),
    },
    "attention_config": {
        _ROUNDING: ("flash_attn_max_num_splits_for_cuda_graph", "tokenspeed_mla_min_split_kv", "tq_max_kv_splits_for_cuda_graph",
                    "indexer_sparse_logits", "sparse_mla_prefill_workspace_factor", "flex_attn_block_m", "flex_attn_block_n",
                    "flex_attn_q_block_size", "flex_attn_kv_block_size", "indexer_tp_shard_min_rows", "minimax_m3_indexer_cp"),
    },
    "speculative_config": {
        _FILES: ("model", "revision", "draft_model_config", "target_model_config", "draft_load_config"),
        _OUTPUT: ("num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min", "num_speculative_tokens_per_batch_size",
                  "suffix_decoding_max_tree_depth", "suffix_decoding_max_cached_requests", "suffix_decoding_max_spec_factor",
                  "suffix_decoding_min_token_prob", "rejection_sample_method", "synthetic_acceptance_rates",
                  "synthetic_acceptance_length", "enable_adaptive_verification", "draft_sample_method", "dspark_draft_topk",
                  "use_local_argmax_reduction", "disable_eagle_block_drop", "draft_lm_head_quantization", "xpress_topc",
                  "fly_window_size", "fly_entropy_threshold", "fly_entropy_top_k"),
        _ROUNDING: ("enforce_eager", "moe_backend", "disable_padded_drafter_batch"),
        _PLACE: ("tensor_parallel_size", "target_parallel_config", "draft_parallel_config", "max_model_len"),
    },
    "load_config": {
        _FILES: ("download_dir",),
        _PLACE: ("safetensors_load_strategy", "safetensors_prefetch_num_threads", "safetensors_prefetch_block_size", "device",
                 "use_tqdm_on_load", "pt_load_map_location"),
    },
    "diffusion_config": {},
    "": {
        "its fields are a part of their own": ("model_config", "cache_config", "parallel_config", "attention_config",
                                               "speculative_config", "load_config", "mamba_config", "diffusion_config"),
        "an adapter's identity has it": ("lora_config",),
        "derived from the model's quantization": ("quant_config",),
        _SCHEDULE: ("scheduler_config", "shutdown_timeout", "performance_mode"),
        _PLACE: ("device_config", "offload_config", "engram_config", "weight_transfer_config", "kv_transfer_config",
                 "ec_transfer_config", "ec_manager_config"),
        _ROUNDING: ("kernel_config", "compilation_config", "optimization_level"),
        _OUTPUT: ("structured_outputs_config", "observability_config", "logging_config", "profiler_config", "kv_events_config",
                  "reasoning_config", "aux_output_config", "watermark_config", "watchdog_config"),
        _LAUNCH: ("instance_id",),
    },
}
IGNORED_WITH_ADAPTERS: dict[str, tuple[str, ...]] = {
    _PLACE: ("max_lora_rank", "max_loras", "max_cpu_loras", "fully_sharded_loras", "max_lora_cls_labels"),
    _ROUNDING: ("specialize_active_lora",),
    "a request's adapter is asked for by its path": ("default_mm_loras",),
}

# formats whose weights come only from the files of the model's folder
FILE_FORMATS = frozenset({
    "auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "pt", "npcache", "mistral", "bitsandbytes", "gguf",
    "sharded_state", "runai_streamer", "runai_streamer_sharded",
})


def weights_of(vllm_config: Any, revision: str | None = None) -> Weights:
    """`revision`: the user's name for the weights, and for anything that the configuration does not tell."""
    factors, unclear = factors_of(vllm_config)
    if revision is not None:
        return Weights(revision, factors)
    try:
        if unclear:
            raise Unidentified(unclear)
        return Weights("-".join(one.digest for one in _identities(vllm_config)), factors)
    except Unidentified as why:
        return Weights(engine_identity(vllm_config), factors, str(why))


def factors_of(vllm_config: Any) -> tuple[dict[str, Any], str]:
    """Returns the used fields in JSON's types, and which of them say too little."""
    factors: dict[str, Any] = {"variables": {name: os.environ[name] for name in VARIABLES if name in os.environ}}
    unclear = ""
    for part, names in USED.items():
        of = vllm_config
        for step in filter(None, part.split(".")):
            of = getattr(of, step, None)
        for name in names:
            value = getattr(of, name, None)
            if value is None or value == {}:
                continue  # nobody has set it, or this version does not have it
            try:
                factors[f"{part}.{name}"] = plain(value)
            except Unidentified as why:
                factors[f"{part}.{name}"] = type(value).__name__
                unclear = unclear or f"{part}.{name}: {why}"
    if _long_rope(vllm_config):
        factors["long_rope"] = True
    return factors, unclear


def adapter_factors(vllm_config: Any) -> dict[str, Any]:
    lora = getattr(vllm_config, "lora_config", None)
    values = {name: getattr(lora, name, None) for name in USED_WITH_ADAPTERS}
    return {name: plain(set(value) if isinstance(value, list) else value) for name, value in values.items() if value is not None}


def plain(value: Any) -> Any:
    """Converts a value to JSON's types. Raises Unidentified for one that says nothing about itself, such as a
    function."""
    if value is None or isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(str(plain(one)) for one in value)
    if isinstance(value, Sequence):
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name, None)) for field in dataclasses.fields(value)}
    shown = str(value)
    if callable(value) or " at 0x" in shown:
        raise Unidentified(f"a {type(value).__name__} does not say what it does")
    return shown  # such as torch.bfloat16


def engine_identity(vllm_config: Any) -> str:
    """Returns an identity that no other engine has, and on which the processes of this one agree."""
    transfer = getattr(vllm_config, "kv_transfer_config", None)
    told = [getattr(transfer, "engine_id", None), getattr(vllm_config, "instance_id", None)]
    if not all(told):
        return "process-" + process_identity()
    return "engine-" + "-".join(str(one) for one in told)


def _identities(vllm_config: Any) -> list[Identity]:
    model, load = vllm_config.model_config, getattr(vllm_config, "load_config", None)
    if getattr(getattr(vllm_config, "cache_config", None), "calculate_kv_scales", False):
        raise Unidentified("calculate_kv_scales: each engine has scales of its own")
    found = [_identity(model, load)]
    config_path = getattr(model, "hf_config_path", None)
    if config_path:
        found.append(loaded_identity_of(config_path, needs_weights=False))
    speculative = getattr(vllm_config, "speculative_config", None)
    draft = getattr(speculative, "draft_model_config", None)
    if draft is not None:
        found.append(_identity(draft, getattr(speculative, "draft_load_config", None) or load))
    return found


def _identity(model: Any, load: Any) -> Identity:
    load_format = getattr(load, "load_format", "auto")
    load_format = str(getattr(load_format, "value", load_format)).lower()
    if load_format not in FILE_FORMATS:
        raise Unidentified(f'weights of the load format "{load_format}" are not those of the model\'s files')
    weights = getattr(model, "model_weights", "") or model.model
    return loaded_identity_of(weights, getattr(model, "revision", None), getattr(load, "download_dir", None))


def _long_rope(vllm_config: Any) -> bool:
    """Rotary embeddings that use other factors once a model may be longer than it was trained for."""
    model = getattr(vllm_config, "model_config", None)
    config = getattr(model, "hf_text_config", None)
    trained = getattr(config, "original_max_position_embeddings", None)
    for said in (getattr(config, "rope_parameters", None), getattr(config, "rope_scaling", None)):
        if isinstance(said, Mapping):
            trained = trained or said.get("original_max_position_embeddings")
    longest = getattr(model, "max_model_len", None)
    return bool(trained and longest and longest > trained)
