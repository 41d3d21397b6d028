"""A random Llama of two layers, small enough for a test. Its weights are so large that each token depends on the KV of all
tokens before it. tiny_model.py FOLDER"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

VOCABULARY = 2048
HIDDEN = 256
INNER = 512
HEADS = 4
KV_HEADS = 2
HEAD = 64
LAYERS = 2
SPREAD = 0.2

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
    "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
}


def weights() -> dict[str, torch.Tensor]:
    source = torch.Generator().manual_seed(1)

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return (torch.randn(rows, columns, generator=source) * SPREAD).to(torch.bfloat16)

    made = {"model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN), "lm_head.weight": matrix(VOCABULARY, HIDDEN),
            "model.norm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16)}
    for layer in range(LAYERS):
        parts = {
            "self_attn.q_proj": (HEADS * HEAD, HIDDEN), "self_attn.k_proj": (KV_HEADS * HEAD, HIDDEN),
            "self_attn.v_proj": (KV_HEADS * HEAD, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * HEAD),
            "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER),
        }
        for name, (rows, columns) in parts.items():
            made[f"model.layers.{layer}.{name}.weight"] = matrix(rows, columns)
        for name in ("input_layernorm", "post_attention_layernorm"):
            made[f"model.layers.{layer}.{name}.weight"] = torch.ones(HIDDEN, dtype=torch.bfloat16)
    return made


def main(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "config.json").write_text(json.dumps(CONFIG))
    save_file(weights(), str(Path(folder, "model.safetensors")), metadata={"format": "pt"})


if __name__ == "__main__":
    main(sys.argv[1])
