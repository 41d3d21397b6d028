"""Conversations of several turns that share system prompts, made of the text of this repository's pages."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Shape:
    conversations: int
    turns: int
    system_prompts: int
    system_tokens: int
    turn_tokens: tuple[int, int]  #: least and most of a question with the answer before it
    think_seconds: float  #: mean of an exponential distribution
    answer_tokens: int

    @property
    def most_tokens(self) -> int:
        """The longest prompt with its answer."""
        return self.system_tokens + self.turns * self.turn_tokens[1] + self.answer_tokens


@dataclass(frozen=True)
class Turn:
    prompt: list[int]  #: tokens, with all earlier turns
    think_seconds: float  #: before it is sent


Conversation = list[Turn]


def pages() -> str:
    """Text that differs from place to place."""
    return "\n".join(page.read_text() for page in sorted(ROOT.glob("docs/**/*.md")))


def make(shape: Shape, text: list[int], seed: int) -> list[Conversation]:
    """`text`: tokens of which each part of a prompt takes the next ones. The same arguments give the same conversations."""
    chance = random.Random(seed)
    at = 0

    def take(tokens: int) -> list[int]:
        nonlocal at
        if at + tokens > len(text):
            raise ValueError(f"expected a text of more than {at + tokens} tokens, got {len(text)}")
        at += tokens
        return text[at - tokens : at]

    systems = [take(shape.system_tokens) for _ in range(shape.system_prompts)]
    made = []
    for number in range(shape.conversations):
        prompt = list(systems[number % len(systems)])
        turns = []
        for _ in range(shape.turns):
            prompt = prompt + take(chance.randint(*shape.turn_tokens))
            turns.append(Turn(prompt, chance.expovariate(1 / shape.think_seconds)))
        made.append(turns)
    return made


def distinct_tokens(conversations: list[Conversation], shape: Shape) -> int:
    """Those whose KV differs: what a cache needs to keep all."""
    own = sum(len(turns[-1].prompt) - shape.system_tokens for turns in conversations)
    return own + shape.system_prompts * shape.system_tokens
