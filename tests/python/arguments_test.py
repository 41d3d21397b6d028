"""Numbers and bytes from clients: anything that is not exactly a list of numbers is refused, because it would name
other chunks."""

from __future__ import annotations

import array
import ctypes
import fractions
import unittest
from collections import Counter, OrderedDict, UserDict
from typing import Any

import numpy
import terrace
from terrace import BadRequest, Prefix

TOKENS = [5, 70_000, 3, 2**32 - 1]
BIG_ENDIAN = ctypes.c_uint32.__ctype_be__ * 4


class Tokens(unittest.TestCase):
    def test_arrays_of_whole_numbers_are_taken(self) -> None:
        small = [5, 70_000, 3, 2**31 - 1]
        for given in (small, tuple(small), range(4), dict(enumerate(small)).values(), numpy.array(small, numpy.int32),
                     numpy.array(small, "<u4"), numpy.array(small, "=i8"), numpy.array(small, numpy.uint64),
                     list(numpy.array(small)), array.array("i", small), memoryview(array.array("L", small))):
            with self.subTest(given=given):
                self.assertEqual(repr(Prefix.of_tokens(given)), "<terrace.Prefix of 4 tokens>")
        self.assertEqual(repr(Prefix.of_tokens(numpy.array(TOKENS, numpy.uint32))), "<terrace.Prefix of 4 tokens>")

    def test_numbers_outside_of_32_bits_are_refused(self) -> None:
        for wrong in (numpy.array([1, -1], numpy.int32), array.array("i", [-2**31]), numpy.array([-1], numpy.int64),
                      numpy.array([2**32], numpy.uint64), numpy.array([2**63], numpy.uint64)):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(BadRequest, "32 bits, got (-|4294967296|9223)"):
                Prefix.of_tokens(wrong)
        for listed in ([1, -1], (-1,), [2**32]):
            with self.subTest(listed=listed), self.assertRaisesRegex(TypeError, "expected a number of 32 bits, got"):
                Prefix.of_tokens(listed)

    def test_arrays_of_another_form_are_refused(self) -> None:
        wrong: list[tuple[Any, str]] = [
            (numpy.array(TOKENS, ">u4"), "in this machine's byte order"),
            (numpy.array([1, 2], ">i8"), "in this machine's byte order"),
            (BIG_ENDIAN(1, 2, 3, 4), "in this machine's byte order"),
            (numpy.zeros((2, 2), numpy.int32), "of one dimension, got 2"),
            (numpy.zeros((1, 4), numpy.int64), "of one dimension, got 2"),
            (memoryview(bytes(16)).cast("I", (2, 2)), "of one dimension, got 2"),
            (numpy.array(3, numpy.int32), "of one dimension, got 0"),
            (numpy.array([1.0, 2.0]), "integers of 4 or 8 bytes"),
            (numpy.array([1.0, 2.0], numpy.float32), "integers of 4 or 8 bytes"),
            (numpy.array([True, False]), "integers of 4 or 8 bytes"),
            (numpy.array([1, 2], numpy.int16), "integers of 4 or 8 bytes"),
            (numpy.array([(1, 2)], [("a", "i4"), ("b", "i4")]), "integers of 4 or 8 bytes"),
            (b"four", "integers of 4 or 8 bytes"),
        ]
        for given, why in wrong:
            with self.subTest(given=given), self.assertRaisesRegex(TypeError, f"expected tokens as .*{why}"):
                Prefix.of_tokens(given)

    def test_things_without_an_order_of_their_own_are_refused(self) -> None:
        for wrong in ({5: "a", 6: "b"}, {5, 6}, frozenset({5}), Counter([5]), OrderedDict({5: 6}), UserDict({5: 6})):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "expected tokens as a sequence, got"):
                Prefix.of_tokens(wrong)  # type: ignore[arg-type]

    def test_what_is_not_a_whole_number_is_refused(self) -> None:
        numbers: list[Any] = [True, 1.0, 1.5, "12", b"1", None, numpy.float32(2.5), numpy.float64(2), numpy.bool_(True),
                              fractions.Fraction(3, 2), [1]]
        for wrong in numbers:
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "expected a number of 32 bits, got"):
                Prefix.of_tokens([1, wrong])
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "expected a number of 32 bits, got"):
                Prefix.of_tokens((1, wrong))


class Digests(unittest.TestCase):
    def test_bytes_of_whole_digests_are_taken(self) -> None:
        for given, width, count in ((bytes(64), None, 2), (bytearray(64), 16, 4), (numpy.zeros((3, 16), numpy.uint8), None, 3),
                                    (numpy.zeros((3, 16), numpy.uint8), 16, 3), ([bytes(8)] * 5, None, 5),
                                    (numpy.zeros((3, 32), numpy.int8), None, 3)):
            made = Prefix.of_digests(given, width=width)  # type: ignore[arg-type]
            self.assertEqual(repr(made), f"<terrace.Prefix of {count} digests>")

    def test_arrays_of_another_form_are_refused(self) -> None:
        for wrong in (numpy.zeros(8, numpy.int64), numpy.zeros((2, 4), ">u8"), array.array("I", [0] * 8),
                      numpy.zeros(4), [array.array("q", [0] * 4)]):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(TypeError, "expected digests as bytes"):
                Prefix.of_digests(wrong)  # type: ignore[arg-type]
        for shape, width in (((4, 16), 32), ((2, 2, 32), None), ((32, 2), 32), ((2, 33), None), ((2, 0), None)):
            with self.subTest(shape=shape), self.assertRaisesRegex(BadRequest, "expected digests"):
                Prefix.of_digests(numpy.zeros(shape, numpy.uint8), width=width)
        for mapping in ({bytes(32): 1}, {bytes(32)}):
            with self.subTest(mapping=mapping), self.assertRaisesRegex(TypeError, "expected digests as a sequence"):
                Prefix.of_digests(mapping)

    def test_end_offsets_are_read_as_tokens_are(self) -> None:
        for wrong in (numpy.array([16], ">u4"), {16: 1}, [True], ["16"]):
            with self.subTest(wrong=wrong), self.assertRaises(TypeError):
                Prefix.of_digests([bytes(32)], end_offsets=wrong)  # type: ignore[arg-type]
        with self.assertRaises(BadRequest):
            Prefix.of_digests([bytes(32)], end_offsets=numpy.array([-16], numpy.int32))


class Places(unittest.TestCase):
    def test_rows_are_whole_numbers_in_an_order(self) -> None:
        for wrong in (numpy.array([1], ">u4"), {1: 2}, {1}, [True], ["1"], [1.0], numpy.zeros((1, 1), numpy.int32)):
            with self.subTest(wrong=wrong), self.assertRaises(TypeError):
                terrace.Rows(wrong, 4096)  # type: ignore[arg-type]
        with self.assertRaises(BadRequest):
            terrace.Rows(array.array("i", [-1]), 4096)

    def test_rows_beyond_all_memory_are_refused(self) -> None:
        for row, nbytes, offset in ((2, 2**63, 0), (1, 4096, 2**64 - 4096), (2**32 - 1, 2**40, 0)):
            with self.subTest(row=row), self.assertRaisesRegex(BadRequest, "expected rows at less than 2\\^64 bytes"):
                terrace.Rows([row], nbytes, offset=offset)

    def test_parts_of_slots_are_inside_of_them(self) -> None:
        self.assertEqual(len(terrace.Rows.in_slots(4096, 256, 3, [(0, 64), (64, 192)])), 6)
        self.assertEqual(len(terrace.Rows.in_slots(0, 256, 0, [(0, 64)])), 0)
        for slot_bytes, slots, part in ((256, 1, (0, 257)), (256, 1, (257, 0)), (256, 1, (2**64 - 1, 2)), (64, 2**20 + 1, (0, 64)),
                                        (2**62, 8, (0, 64)), (64, 2**64 - 1, (0, 64))):
            with self.subTest(part=part, slots=slots), self.assertRaises(BadRequest):
                terrace.Rows.in_slots(4096, slot_bytes, slots, [part])
        with self.assertRaises(TypeError):
            terrace.Rows.in_slots(0, 256, 1, [("0", 64)])  # type: ignore[list-item]

    def test_items_and_numbers_of_bytes_are_whole_numbers(self) -> None:
        for item in (("image", "1", 2), ("image", 1.0, 2), ("image", True, 2), ("image", -1, 2)):
            with self.subTest(item=item), self.assertRaises(TypeError):
                Prefix.of_tokens([1, 2, 3, 4], items=[item])  # type: ignore[list-item]
        for name in ({"parent_tokens": "5"}, {"parent_tokens": 2.0}, {"parent_tokens": True}):
            with self.subTest(name=name), self.assertRaises(TypeError):
                Prefix.of_tokens([1], **name)  # type: ignore[arg-type]

    def test_a_text_is_not_a_sequence_of_tags(self) -> None:
        for make in (lambda: Prefix.of_tokens([1], tags="one"), lambda: Prefix.of_digests([bytes(32)], tags="one")):
            with self.assertRaisesRegex(TypeError, "expected tags as a sequence, got one text"):
                make()


if __name__ == "__main__":
    unittest.main()
