"""A decoder of the Llama kind in plain PyTorch, with random weights. The blocks of its KV lie anywhere in one
tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

BLOCK_TOKENS = 16


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    vocabulary: int

    @property
    def block_bytes(self) -> int:
        """Bytes of K or V of one layer, in bf16."""
        return BLOCK_TOKENS * self.kv_heads * self.head_dim * 2

    @property
    def planes(self) -> int:
        """Number of planes: K and V of each layer."""
        return 2 * self.layers


SHAPES = {
    "8b": Shape(32, 4096, 32, 8, 128, 14336, 128256),
    "tiny": Shape(2, 64, 4, 2, 16, 128, 512),
    # the KV of 8b, with hardly anything to compute
    "thin": Shape(32, 64, 8, 8, 128, 64, 512),
}

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention of (head, token, dim): the last query sees all keys. Uses flash kernels on a GPU;
    `choose_attention` finds out whether heads of keys must be repeated for that."""
    bias = causal_lower_right(query.shape[-2], key.shape[-2])
    grouped = {"enable_gqa": True} if query.shape[0] != key.shape[0] else {}
    return F.scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=bias, **grouped)[0]


def repeating_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    times = query.shape[0] // key.shape[0]
    return attention(query, key.repeat_interleave(times, 0), value.repeat_interleave(times, 0))


def exact_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Computes attention by its formula, for comparison."""
    times = query.shape[0] // key.shape[0]
    key, value = (each.float().repeat_interleave(times, 0) for each in (key, value))
    scores = query.float() @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    behind = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(scores.shape[2] - scores.shape[1] + 1)
    return (scores.masked_fill(behind, float("-inf")).softmax(-1) @ value).to(query.dtype)


def choose_attention(shape: Shape, device: torch.device) -> Attention:
    """Chooses the first variant that is right on this device."""
    source = torch.Generator(device).manual_seed(5)
    make = lambda heads, tokens: torch.randn(heads, tokens, shape.head_dim, generator=source, device=device, dtype=torch.bfloat16)
    reasons = []
    for way in (attention, repeating_attention):
        try:
            for queries, keys in ((24, 1048), (64, 64)):
                q, k, v = make(shape.heads, queries), make(shape.kv_heads, keys), make(shape.kv_heads, keys)
                torch.testing.assert_close(way(q, k, v), exact_attention(q, k, v), atol=0.06, rtol=0.06)
            return way
        except (RuntimeError, TypeError, AssertionError) as reason:
            reasons.append(f"{way.__name__}: {reason}")
    raise SystemExit("no attention is right here:\n" + "\n".join(reasons))


class Decoder:
    """A decoder whose `kv` is (layer, K or V, block, token, head, dim)."""

    def __init__(self, shape: Shape, kv: Tensor, positions: int) -> None:
        self.shape = shape
        self.kv = kv
        self.attention = choose_attention(shape, kv.device)
        source = torch.Generator(kv.device).manual_seed(7)
        width = shape.heads * shape.head_dim

        def weights(*size: int) -> Tensor:
            made = torch.empty(size, dtype=torch.bfloat16, device=kv.device)
            return made.normal_(0, size[-1] ** -0.5, generator=source)

        self.embedding = weights(shape.vocabulary, shape.hidden)
        self.head = weights(shape.vocabulary, shape.hidden)
        self.ones = torch.ones(shape.hidden, dtype=torch.bfloat16, device=kv.device)
        self.layers = [
            (
                weights(width + 2 * shape.kv_heads * shape.head_dim, shape.hidden),
                weights(shape.hidden, width),
                weights(2 * shape.mlp, shape.hidden),
                weights(shape.hidden, shape.mlp),
            )
            for _ in range(shape.layers)
        ]
        steps = torch.arange(0, shape.head_dim, 2, device=kv.device, dtype=torch.float32) / shape.head_dim
        angles = torch.arange(positions, device=kv.device, dtype=torch.float32)[:, None] * 500_000.0**-steps
        self.cos = angles.cos().to(torch.bfloat16)[:, None]
        self.sin = angles.sin().to(torch.bfloat16)[:, None]

    def forward(self, tokens: Tensor, table: Tensor, start: int) -> Tensor:
        """Computes `tokens` after the first `start` tokens, whose KV is present, and leaves their KV in the
        blocks of `table`. Returns the last token's logits."""
        count, end = len(tokens), start + len(tokens)
        blocks = table[: (end + BLOCK_TOKENS - 1) // BLOCK_TOKENS]
        positions = torch.arange(start, end, device=table.device)
        slots = blocks[positions // BLOCK_TOKENS] * BLOCK_TOKENS + positions % BLOCK_TOKENS
        cos, sin = self.cos[start:end], self.sin[start:end]
        shape = self.shape
        kv_width = shape.kv_heads * shape.head_dim
        x = F.embedding(tokens, self.embedding)
        for layer, (qkv, out, gate_up, down) in enumerate(self.layers):
            q, k, v = F.linear(self._normed(x), qkv).split([shape.heads * shape.head_dim, kv_width, kv_width], -1)
            q = _turned(q.view(count, shape.heads, shape.head_dim), cos, sin)
            k = _turned(k.view(count, shape.kv_heads, shape.head_dim), cos, sin)
            v = v.view(count, shape.kv_heads, shape.head_dim)
            for which, new in enumerate((k, v)):
                self.kv[layer, which].flatten(0, 1).index_copy_(0, slots, new)
            if start > 0:
                k, v = (self.kv[layer, which][blocks].flatten(0, 1)[:end] for which in (0, 1))
            seen = self.attention(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1))
            x = x + F.linear(seen.transpose(0, 1).reshape(count, -1), out)
            gate, up = F.linear(self._normed(x), gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate, inplace=True).mul_(up), down)
        return F.linear(self._normed(x[-1:]), self.head)[0]

    def prefill(self, tokens: Tensor, table: Tensor, piece: int, start: int = 0) -> Tensor:
        """Computes all tokens from `start` on, `piece` at a time."""
        for begin in range(start, len(tokens), piece):
            logits = self.forward(tokens[begin : begin + piece], table, begin)
        return logits

    def _normed(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (self.shape.hidden,), self.ones, 1e-5)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Applies rotary positions."""
    half = x.shape[-1] // 2
    one, two = x[..., :half], x[..., half:]
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)
