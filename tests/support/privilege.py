"""Processes without the rights of root."""

import ctypes
import os

PR_CAPBSET_DROP = 24

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER = 1, 2, 3


def without_privilege() -> None:
    """Root may write anywhere by capabilities; without them the mode of a directory counts for it as for anybody."""
    if os.getuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER):
            assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
