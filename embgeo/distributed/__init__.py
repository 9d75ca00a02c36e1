"""A matrix measured in parts, on one machine or many: states are files that merge.

The first round takes a part of the rows to a state (`first_round`); states of all parts make a
plan (`plan_of`, `planned`); the second round takes the plan and a part to another state
(`second_round`); these make the analysis (`finished`). ``docs/scale.md`` shows how.
"""

from embgeo.distributed.finish import after_one_round, finished
from embgeo.distributed.merging import plan_of, with_rows
from embgeo.distributed.plans import planned
from embgeo.distributed.rounds import first_round, part_of, second_round, task_of

__all__ = [
    "after_one_round",
    "finished",
    "first_round",
    "part_of",
    "plan_of",
    "planned",
    "second_round",
    "task_of",
    "with_rows",
]
