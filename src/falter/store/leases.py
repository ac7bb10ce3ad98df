"""Leases on requests, so that processes sharing a store never send the same request twice.

A lease is a lock on one byte of an empty file next to the store; the request's key determines the
offset. The operating system releases the lock when the process ends for whatever reason. So no
lease has to expire, and a killed run can be resumed at once.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks: every lease is granted
    fcntl = None  # type: ignore[assignment]


# POSIX lets a system choose either of the two for a range that another process has locked.
_LOCKED = (errno.EAGAIN, errno.EACCES)


class Leases:
    """The leases that one open store holds on requests, which their keys identify.

    Two stores that are open on one file, in one process or in two, exclude each other. If the
    system lacks such locks or the lease file cannot be created, every lease is granted.
    """

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}-claims")
        self._file: int | None = None

    def claim(self, keys: Iterable[str]) -> set[str]:
        """Lease the keys and return the keys that are now leased to this store."""
        if fcntl is None or not hasattr(fcntl, "F_OFD_SETLK") or not self._open_file():
            return set(keys)
        # Locks of an open file description, not of a process: POSIX locks do not exclude a second
        # store in the same process, and closing any descriptor of the file drops all of them.
        return {key for key in keys if self._try_lock(key, fcntl.F_WRLCK)}

    def leased_elsewhere(self, keys: Iterable[str]) -> set[str]:
        """Return the keys that are leased to another store; lease nothing."""
        if fcntl is None or not hasattr(fcntl, "F_OFD_GETLK") or not self._open_file():
            return set()
        return {key for key in keys if self._is_leased_elsewhere(key)}

    def has_other_leases(self) -> bool:
        """Return True if another store has a lease on any request, so that a run is in progress."""
        if fcntl is None or not hasattr(fcntl, "F_OFD_GETLK") or not self._open_file():
            return False
        # A range of length 0 reaches to the end of the file, so it meets every lease.
        return self._conflicts(struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))

    def release(self, keys: Iterable[str]) -> None:
        """Release leases of requests that are stored, or that will not be sent."""
        if self._file is not None:
            for key in keys:
                self._try_lock(key, fcntl.F_UNLCK)

    def close(self) -> None:
        """Release all leases and close the lease file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open_file(self) -> bool:
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError:
                return False
        return True

    def _is_leased_elsewhere(self, key: str) -> bool:
        return self._conflicts(_lock_record(key, fcntl.F_WRLCK))

    def _conflicts(self, lock: bytes) -> bool:
        assert self._file is not None
        try:
            found = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, lock)
        except OSError:
            return False
        return bool(struct.unpack("hhqqi4x", found)[0] != fcntl.F_UNLCK)

    def _try_lock(self, key: str, kind: int) -> bool:
        assert self._file is not None
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _lock_record(key, kind))
        except OSError as error:
            # Any other error means a file system without locks: better to send twice than never.
            return error.errno not in _LOCKED
        return True


def _lock_record(key: str, kind: int) -> bytes:
    # The 15 hex digits after "sha256:". These 60 bits stay below 2**63, the largest offset. Two of
    # a million keys share an offset with probability 4e-7; they are merely not sent concurrently.
    place = int(key[7:22], 16)
    # `struct flock` of 64-bit Linux: kind, origin, start, length, process (0 here), padding.
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0)
