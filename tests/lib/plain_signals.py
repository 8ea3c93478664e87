# SPDX-License-Identifier: MIT
"""What programs do with signals must not depend on who has started the tests."""

import signal


def plain_signals():
    """None ignored (as under nohup), none blocked (as by a daemon): for all that is started.

    Python itself ignores two, and undoes that in what it starts.
    """
    for signo in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(signo) == signal.SIG_IGN:
            signal.signal(signo, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
