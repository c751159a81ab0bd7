"""64-bit fingerprints, and a compact table of them."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_START = 1024


def hash_content(content: bytes) -> int:
    """Return 64 bits of BLAKE2b. Among a million different contents, two collide with a probability of 3 in 10⁸."""
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


class FingerprintTable:
    """Maps fingerprints to 32-bit numbers: a table with open addressing, 12 bytes per slot, a third to two thirds full."""

    def __init__(self) -> None:
        self._count = 0
        self._fingerprints, self._numbers = _make_arrays(_START)

    def __len__(self) -> int:
        return self._count

    def store_first(self, fingerprint: int, number: int) -> int | None:
        """Return the number stored under ``fingerprint``. If there is none, store ``number`` and return None."""
        slot = self._find_slot(fingerprint)
        if self._fingerprints[slot]:
            return self._numbers[slot]
        self._fingerprints[slot], self._numbers[slot] = fingerprint or 1, number
        self._count += 1
        if self._count * 3 > len(self._numbers) * 2:
            self._grow_table()
        return None

    def find_number(self, fingerprint: int) -> int | None:
        """Return the number stored under ``fingerprint``. None if there is none."""
        slot = self._find_slot(fingerprint)
        return self._numbers[slot] if self._fingerprints[slot] else None

    def _find_slot(self, fingerprint: int) -> int:
        nonzero, mask = fingerprint or 1, len(self._numbers) - 1  # 0 marks an empty slot
        slot, fingerprints = nonzero & mask, self._fingerprints
        while fingerprints[slot] and fingerprints[slot] != nonzero:
            slot = (slot + 1) & mask
        return slot

    def _grow_table(self) -> None:
        fingerprints, numbers = self._fingerprints, self._numbers
        self._fingerprints, self._numbers = _make_arrays(len(numbers) * 2)
        for fingerprint, number in zip(fingerprints, numbers, strict=True):
            if fingerprint:
                slot = self._find_slot(fingerprint)
                self._fingerprints[slot], self._numbers[slot] = fingerprint, number


def _make_arrays(slots: int) -> tuple[array[int], array[int]]:
    return array("Q", bytes(8 * slots)), array("I", bytes(4 * slots))
