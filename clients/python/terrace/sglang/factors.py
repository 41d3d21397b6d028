"""The SGLang arguments that affect the KV of given tokens, besides the files of the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..weights import Identity, Unidentified, Weights, loaded_identity_of, process_identity

USED = (
    "dtype", "quantization", "kv_cache_dtype", "load_format", "model_loader_extra_config", "model_impl",
    "json_model_override_args", "custom_weight_loader", "context_length", "weight_version",
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "mm_attention_backend", "mm_process_config",
    "dsa_prefill_backend", "dsa_decode_backend", "mamba_backend", "mamba_ssm_dtype",
    "speculative_algorithm", "speculative_draft_model_quantization", "speculative_draft_kv_cache_dtype",
    "speculative_draft_attention_backend", "lora_target_modules", "lora_backend",
)
# arguments that `identities` examines
FILES = ("model_path", "revision", "download_dir", "quantization_param_path", "speculative_draft_model_path",
         "speculative_draft_model_revision", "lora_paths", "enable_lora")
# formats whose weights come only from the files of the model's folder
FILE_FORMATS = frozenset({"auto", "safetensors", "fastsafetensors", "pt", "npcache", "mistral", "bitsandbytes", "gguf",
                          "layered", "sharded_state", "runai_streamer"})


def weights_of(args: Any, revision: str | None, tp_size: int) -> Weights:
    """`args`: SGLang's ServerArgs, or None if they cannot be seen. `revision`: the user's name for the model's
    weights. Adapters (LoRA) are examined in any case."""
    factors: dict[str, Any] = {name: str(getattr(args, name)) for name in USED if getattr(args, name, None) is not None}
    try:
        if args is None and revision is None:
            raise Unidentified("SGLang's arguments cannot be seen")
        factors["adapters"] = [[name, path, loaded_identity_of(path).digest] for name, path in adapters_of(args)]
        if revision is None:
            revision = "-".join(one.digest for one in _identities(args))
        return Weights(revision, factors)
    except Unidentified as why:
        return Weights(_engine_identity(args, tp_size), factors, str(why))


def adapters_of(args: Any) -> list[tuple[str, str]]:
    """Returns names and paths of the adapters that the engine was started with. Adapters loaded later have other keys
    each time."""
    given = getattr(args, "lora_paths", None) or []
    return sorted(_named(given.items() if isinstance(given, dict) else given))


def _named(given: Any) -> Iterator[tuple[str, str]]:
    for one in given:
        if isinstance(one, str):
            name, _, path = one.partition("=")
            yield name, path or name
        elif isinstance(one, dict):
            yield str(one["lora_name"]), str(one["lora_path"])
        elif isinstance(one, tuple):
            yield str(one[0]), str(getattr(one[1], "lora_path", one[1]))
        else:
            yield str(one.lora_name), str(one.lora_path)


def _identities(args: Any) -> Iterator[Identity]:
    load_format = str(getattr(args.load_format, "value", args.load_format)).lower()
    if load_format not in FILE_FORMATS:
        raise Unidentified(f'weights of the load format "{load_format}" are not those of the model\'s files')
    cache = getattr(args, "download_dir", None)
    yield loaded_identity_of(args.model_path, getattr(args, "revision", None), cache)
    if draft := getattr(args, "speculative_draft_model_path", None):
        yield loaded_identity_of(draft, getattr(args, "speculative_draft_model_revision", None), cache)
    if scales := getattr(args, "quantization_param_path", None):
        yield loaded_identity_of(scales, needs_weights=False)


def _engine_identity(args: Any, tp_size: int) -> str:
    """Returns an identity that no other engine has. The ranks of this engine, which the same process starts, agree on
    it."""
    if tp_size == 1:
        return "process-" + process_identity()
    with open(f"/proc/{os.getppid()}/stat") as status:
        started = status.read().rpartition(")")[2].split()[19]
    with open("/proc/sys/kernel/random/boot_id") as boot:
        return f"engine-{boot.read().strip()}-{os.getppid()}-{started}-{getattr(args, 'random_seed', None)}"
