"""A random adapter (LoRA) of the tiny Llama, so large that it changes its tokens: tiny_adapter.py FOLDER SEED."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tiny_model import HEAD, HEADS, HIDDEN, KV_HEADS, LAYERS

RANK = 8


def write(folder: str, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    made = {}
    for layer in range(LAYERS):
        for name, rows in {"q_proj": HEADS * HEAD, "k_proj": KV_HEADS * HEAD, "v_proj": KV_HEADS * HEAD}.items():
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            made[f"{prefix}.lora_A.weight"] = torch.randn(RANK, HIDDEN, generator=source) * 0.2
            made[f"{prefix}.lora_B.weight"] = torch.randn(rows, RANK, generator=source) * 0.2
    Path(folder).mkdir(parents=True, exist_ok=True)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["q_proj", "k_proj", "v_proj"],
              "bias": "none", "task_type": "CAUSAL_LM", "base_model_name_or_path": "tiny"}
    Path(folder, "adapter_config.json").write_text(json.dumps(config))
    save_file(made, str(Path(folder, "adapter_model.safetensors")))


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
