"""A matrix measured in parts, on one machine or many: states are files that merge.

The first round takes a part of the rows to a state (`first_round`); states of all parts make a
plan (`make_plan`, `extend_plan`); the second round takes the plan and a part to another state
(`second_round`); these make the analysis (`finish`). ``docs/scale.md`` shows how.
"""

from embgeo.distributed.finish import finish, finish_after_one_round
from embgeo.distributed.merging import add_rows, make_plan
from embgeo.distributed.plans import extend_plan, take_first
from embgeo.distributed.rounds import describe_part, first_round, make_task, second_round

__all__ = [
    "add_rows",
    "describe_part",
    "extend_plan",
    "finish",
    "finish_after_one_round",
    "first_round",
    "make_plan",
    "make_task",
    "second_round",
    "take_first",
]
