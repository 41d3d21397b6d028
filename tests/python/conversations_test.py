"""The conversations that bench/serving plays."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench/serving"))

import conversations  # noqa: E402

SHAPE = conversations.Shape(conversations=3, turns=2, system_prompts=2, system_tokens=5, turn_tokens=(2, 4), think_seconds=1.0, answer_tokens=1)


class Conversations(unittest.TestCase):
    def test_each_turn_continues_the_one_before_and_system_prompts_are_shared(self) -> None:
        made = conversations.make(SHAPE, list(range(100)), 1)
        self.assertEqual(made, conversations.make(SHAPE, list(range(100)), 1))
        self.assertEqual(len(made), 3)
        for first, second in made:
            self.assertEqual(second.prompt[:len(first.prompt)], first.prompt)
            self.assertTrue(2 <= len(second.prompt) - len(first.prompt) <= 4)
            self.assertLessEqual(len(second.prompt) + SHAPE.answer_tokens, SHAPE.most_tokens)
        systems = [turns[0].prompt[:5] for turns in made]
        self.assertEqual(systems[0], systems[2])
        self.assertNotEqual(systems[0], systems[1])
        different = {token for turns in made for token in turns[-1].prompt}  # the text has no token twice
        self.assertEqual(conversations.distinct_tokens(made, SHAPE), len(different))

    def test_a_text_that_is_too_short_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "expected a text of more than"):
            conversations.make(SHAPE, list(range(12)), 1)

    def test_the_pages_are_long_enough_text(self) -> None:
        self.assertGreater(len(conversations.pages()), 200_000)


if __name__ == "__main__":
    unittest.main()
