"""The tests of shared memory again, since here is PyTorch, which some of them need."""

from shared_test import Shared

__all__ = ["Shared"]
