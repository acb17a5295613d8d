"""All schedules by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedmpi.config.options import by_name
from fedmpi.schedules.asynchronous import AsynchronousOptions, BufferedOptions
from fedmpi.schedules.synchronous import DeadlineOptions, SynchronousOptions

AnySchedule = SynchronousOptions | DeadlineOptions | BufferedOptions | AsynchronousOptions
Schedule = Annotated[AnySchedule, Field(discriminator="name")]
SCHEDULES = by_name(AnySchedule)
"""Option classes by name."""
