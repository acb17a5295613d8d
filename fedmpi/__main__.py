"""``python -m fedmpi`` and the console script: Ctrl-C is one line from the first import on."""

import gc
import signal


def main() -> None:
    """Run the command line."""
    gc.set_threshold(100_000, 20, 20)  # while torch and numba are imported, there is no garbage to look for
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until there is a handler
    from fedmpi.comm.forked import meet
    from fedmpi.comm.interrupt import leave, release, several_ranks

    meet()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave)
    if not several_ranks():  # of several, once MPI has started (`fedmpi.comm.world`)
        release()
    from fedmpi.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
