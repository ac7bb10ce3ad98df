"""Restrictions (locks) that a process applies to itself before it runs foreign code.

On Linux there are Landlock for files, seccomp for system calls, dropped capabilities, resource
limits and namespaces. On other systems only the resource limits work. The module imports the
standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

__all__ = ["enter_namespaces", "lock", "probe"]

_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True) if _LINUX else None


def _call(number: int, *arguments: object) -> int:
    """Make a raw system call and return its result; raise `OSError` if it fails."""
    assert _libc is not None
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _prctl(option: int, *arguments: int) -> None:
    assert _libc is not None
    values = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    if _libc.prctl(option, *values) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


# Options of prctl(2), from <linux/prctl.h>.
_PDEATHSIG, _DUMPABLE, _SECCOMP, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 22, 24, 36, 38

# Landlock: files. System calls 444 to 446 create a ruleset, add a rule and restrict the process, on
# every architecture; the numbers and bits are those of <linux/landlock.h>.

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/zero", "/usr/share/zoneinfo")


def _readable_paths() -> list[str]:
    """Return the readable paths: Python's files, the system's libraries and a few devices."""
    paths = sysconfig.get_paths()
    own = [paths["stdlib"], paths["platstdlib"], os.path.join(sys.base_prefix, "lib")]
    return [path for path in (*own, *_LIBRARIES, *_DEVICES) if os.path.exists(path)]


def _landlock_version() -> int:
    return _call(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))


def _restrict_files() -> None:
    """Permit no file access but reading Python and its libraries.

    Where Landlock can, also forbid TCP, abstract sockets and signals to other processes.
    """
    version = _landlock_version()
    # A kernel refuses rights that it does not know. Version 1 has thirteen of them; 2 added moving
    # files between folders (refer), 3 truncation, 5 ioctl on devices.
    bits = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    attributes = [(1 << bits) - 1]
    if version >= 4:
        attributes.append(0b11)  # TCP: bind, connect
    if version >= 6:
        attributes.append(0b11)  # abstract sockets, signals
    packed = struct.pack(f"={len(attributes)}Q", *attributes)
    ruleset = _call(444, packed, ctypes.c_size_t(len(packed)), ctypes.c_uint32(0))
    try:
        for path in _readable_paths():
            _allow_below(ruleset, path)
        _call(446, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow_below(ruleset: int, path: str) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        access = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
        rule = struct.pack("=Qi", access, opened)
        _call(445, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
    finally:
        os.close(opened)


# seccomp: system calls. Calls that are not listed fail with EPERM.

_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7,
    "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
    "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "readv": 19, "writev": 20,
    "access": 21, "select": 23, "sched_yield": 24, "mremap": 25, "mincore": 27, "madvise": 28,
    "dup": 32, "nanosleep": 35, "getpid": 39, "exit": 60, "wait4": 61, "uname": 63, "getcwd": 79,
    "readlink": 89, "umask": 95, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98,
    "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
    "getppid": 110, "rt_sigpending": 127, "rt_sigtimedwait": 128, "rt_sigsuspend": 130,
    "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204,
    "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219, "clock_gettime": 228,
    "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "openat": 257,
    "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271,
    "set_robust_list": 273, "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334,
    "faccessat2": 439, "clone": 56, "tgkill": 234, "prlimit64": 302, "clone3": 435,
}  # fmt: skip
_AARCH64 = {
    "getcwd": 17, "dup": 23, "faccessat": 48, "openat": 56, "close": 57, "getdents64": 61,
    "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67,
    "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93,
    "exit_group": 94, "set_tid_address": 96, "futex": 98, "set_robust_list": 99,
    "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
    "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132,
    "rt_sigsuspend": 133, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigpending": 136,
    "rt_sigtimedwait": 137, "rt_sigreturn": 139, "times": 153, "uname": 160, "getrlimit": 163,
    "getrusage": 165, "umask": 166, "gettimeofday": 169, "getpid": 172, "getppid": 173,
    "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178,
    "sysinfo": 179, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226,
    "mincore": 232, "madvise": 233, "wait4": 260, "getrandom": 278, "membarrier": 283,
    "statx": 291, "rseq": 293, "faccessat2": 439, "clone": 220, "tgkill": 131,
    "prlimit64": 261, "clone3": 435,
}  # fmt: skip
_CONDITIONAL = ("clone", "tgkill", "prlimit64", "clone3")
_ARCHITECTURES = {
    "x86_64": (0xC000003E, _X86_64, 126),
    "aarch64": (0xC00000B7, _AARCH64, 91),
}  # audit number, system calls, capset
_CLONE_THREAD = 0x10000
# Return values of a filter (<linux/seccomp.h>): KILL ends the process, and not the thread alone.
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# Classic BPF: load a word, jump if equal, if a bit is set, if at least; return.
_LOAD, _EQUAL, _SET, _ABOVE, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _seccomp_program() -> bytes:
    """Return the seccomp program for this process and its architecture."""
    audit, calls, _ = _ARCHITECTURES[platform.machine()]
    allow, deny = _op(_RETURN, _ALLOW), _op(_RETURN, _ERRNO | errno.EPERM)
    # Offsets in `struct seccomp_data`: 0 number, 4 architecture, 16 first argument, 32 and 36 the
    # halves of the third. Other architectures have other call numbers, and so has x32 (bit 30).
    program = [
        _op(_LOAD, 4), _op(_EQUAL, audit, 1, 0), _op(_RETURN, _KILL),
        _op(_LOAD, 0), _op(_ABOVE, 0x40000000, 0, 1), deny,
    ]  # fmt: skip
    for name, number in calls.items():
        if name not in _CONDITIONAL:
            program += [_op(_EQUAL, number, 0, 1), allow]
    # Threads, but no processes. clone3 hides its flags in memory, so libc must fall back to clone.
    program += [_op(_EQUAL, calls["clone3"], 0, 1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    program += [_op(_EQUAL, calls["clone"], 0, 4), _op(_LOAD, 16)]
    program += [_op(_SET, _CLONE_THREAD, 0, 1), allow, deny]
    # Signals to this process only. prlimit64 may read limits (its third argument is NULL).
    program += [_op(_EQUAL, calls["tgkill"], 0, 4), _op(_LOAD, 16)]
    program += [_op(_EQUAL, os.getpid(), 0, 1), allow, deny]
    program += [_op(_EQUAL, calls["prlimit64"], 0, 6), _op(_LOAD, 32), _op(_EQUAL, 0, 0, 3)]
    program += [_op(_LOAD, 36), _op(_EQUAL, 0, 0, 1), allow, deny]
    program.append(deny)
    return b"".join(program)


def _restrict_calls() -> None:
    """Forbid network, new processes, signals to others, and undoing any of this."""
    code = _seccomp_program()
    held = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(held)))
    _prctl(_SECCOMP, 2, ctypes.addressof(head))


# Privileges and limits


def _drop_capabilities() -> None:
    """Give up all capabilities, so that root has no more rights than another user."""
    _, _, capset = _ARCHITECTURES[platform.machine()]
    # Version 3 of the interface, this process; then three sets of 64 bits, all empty.
    head = struct.pack("=Ii", 0x20080522, 0)
    _call(capset, head, struct.pack("=6I", *[0] * 6))


def _limit_resources(seconds: int, megabytes: int) -> None:
    if resource is None:
        return
    size = megabytes * 1024 * 1024
    wanted = {
        "RLIMIT_CPU": seconds,
        "RLIMIT_AS": size,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_NPROC": 64 if _LINUX else None,
    }
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None or value is None:
            continue
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # The hard limit is a second later: SIGXCPU, which tells the reason, precedes SIGKILL.
        more = name == "RLIMIT_CPU" and (hard == resource.RLIM_INFINITY or value < hard)
        last = value + 1 if more else value
        try:
            resource.setrlimit(kind, (value, last))
        except (ValueError, OSError):
            if _LINUX:
                raise


def _close_others(keep: Sequence[int]) -> None:
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 65_536 if resource is None else _max_open_files())


def _max_open_files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 65_536 if soft == resource.RLIM_INFINITY else min(soft, 65_536)


def lock(keep: Sequence[int], seconds: int, megabytes: int, without: Sequence[str] = ()) -> None:
    """Apply all locks to this process, except those in `without`, and limit its resources.

    Only the file descriptors in `keep` and 0 to 2 stay open. Raise `OSError` if a lock fails.
    """
    _close_others(keep)
    # The process dies with its parent, hides its memory in /proc, and gains no rights by executing
    # a program. Landlock and seccomp require the last of a process that is not root.
    if _LINUX:
        _prctl(_PDEATHSIG, signal.SIGKILL)
        _prctl(_DUMPABLE, 0)
        _prctl(_NO_NEW_PRIVS, 1)
    _limit_resources(seconds, megabytes)
    for name, close in _LOCKS.items():
        if name not in without:
            close()


# The order counts: seccomp comes last, since it denies the calls that apply the other locks.
_LOCKS: dict[str, Callable[[], None]] = {
    "files": _restrict_files,
    "privileges": _drop_capabilities,
    "calls": _restrict_calls,
}


# Namespaces, if the system permits them: a second barrier besides the locks


def enter_namespaces() -> list[str]:
    """Enter new namespaces for network, processes and messages; return the names of those entered.

    Execution continues in a child of the calling process, which only waits for the child.
    """
    if not _LINUX:
        return []
    _prctl(_SUBREAPER, 1)
    # Tried in a child first: a failure half-way would leave this process without its user id.
    if not _succeeds(_unshare):
        return []
    _unshare()
    # A new process namespace contains the children of the calling process, not that process.
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _prctl(_PDEATHSIG, signal.SIGKILL)
    return ["network", "processes", "messages", "users"]


_NEW_USER, _NEW_PID, _NEW_NET, _NEW_IPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000


def _unshare() -> None:
    assert _libc is not None
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_NEW_USER | _NEW_PID | _NEW_NET | _NEW_IPC) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    # The kernel refuses a gid_map of an unprivileged process that may still call setgroups.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


# Tests of the locks


def _succeeds(work: Callable[[], object]) -> bool:
    """Return True if the work raises nothing in a forked process."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def probe() -> dict[str, bool]:
    """Return lock -> True if it works on this machine, found by attempts to bypass it."""
    return {
        name: _LINUX and _succeeds(lambda tries=tries: _require_lock(*tries))  # type: ignore[misc]
        for name, tries in _ATTEMPTS.items()
    } | {"limits": resource is not None and _succeeds(lambda: _limit_resources(5, 4096))}


def _require_lock(close: Callable[[], None], attempts: Sequence[Callable[[], object]]) -> None:
    """Raise unless every attempt fails once the lock is applied."""
    _prctl(_NO_NEW_PRIVS, 1)
    close()
    for attempt in attempts:
        try:
            attempt()
        except OSError:
            continue
        raise AssertionError("the lock does not hold")


def _open_socket() -> None:
    import socket

    socket.socket().close()


def _fork() -> None:
    if not os.fork():
        os._exit(0)


_ATTEMPTS: dict[str, tuple[Callable[[], None], tuple[Callable[[], object], ...]]] = {
    "files": (_restrict_files, (lambda: os.listdir("/"), lambda: os.listdir("/proc"))),
    "privileges": (_drop_capabilities, (lambda: os.chroot("/"),)),
    "calls": (_restrict_calls, (_open_socket, _fork, lambda: os.kill(os.getppid(), 0))),
}
