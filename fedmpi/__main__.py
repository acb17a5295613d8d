"""``python -m fedmpi`` and the console script: Ctrl-C is one line from the first import on."""

import signal


def main() -> None:
    """Run the command line."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until there is a handler
    from fedmpi.comm.interrupt import leave

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from fedmpi.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
