"""One part of the GPU kit, as a process: ``python -m fedmpi.benchmarks.gpu.part REQUEST``.

It prints a line of JSON for each finding as soon as it has it. A part is a process of its own because a GPU
that has failed once takes no more work from the process that it failed in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter

from fedmpi.benchmarks.gpu.plan import Request, Skipped
from fedmpi.comm import launch
from fedmpi.errors import FedmpiError

REQUEST = TypeAdapter(Request)
"""How a request is an argument of the command line."""

MARK = "fedmpi-part "
"""What a line begins with that is meant for the driver."""

Finding = Mapping[str, Any]
_CODE = {
    "device": "rounds:describe_device",
    "agreement": "agreement:findings",
    "rounds": "rounds:findings",
    "profile": "profile:findings",
    "resume": "launched:resume",
    "ranks": "launched:ranks",
    "sharing": "launched:sharing",
}


def main() -> int:
    """Do the part that the only argument asks for; return the exit code."""
    request = REQUEST.validate_json(sys.argv[1])
    launch.set_defaults(1)
    module, name = _CODE[request.part].split(":")
    try:
        work: Callable[[Request], Iterator[Finding]]
        work = getattr(import_module(f"fedmpi.benchmarks.gpu.{module}"), name)
        for finding in work(request):
            _tell({"finding": finding})
    except Skipped as skipped:
        _tell({"skipped": str(skipped)})
    except FedmpiError as error:
        sys.stderr.write("\n".join([*getattr(error, "__notes__", ()), f"{error}\n"]))
        return error.exit_code
    return 0


def _tell(message: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{MARK}{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
