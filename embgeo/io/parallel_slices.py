"""Files of tensor-parallel models: each holds a slice of every matrix, and is known by its name."""

from __future__ import annotations

import re
from pathlib import Path

from embgeo.io.bounded.guard import refuse

#: Llama's ``consolidated.01.pth``, DeepSpeed's ``mp_rank_01_model_states.pt``, Megatron's folders.
_RANK = re.compile(r"(consolidated\.|mp_rank_)(\d{2,})")


def refuse_slice(path: Path) -> None:
    """Refuse a file that holds a slice of each matrix; the file of rank 0 may be whole.

    Raises
    ------
    UnreadableFile
    """
    for named in (path, path.parent):
        found = _RANK.match(named.name)
        if found is None:
            continue
        rank = found[2]
        second = named.with_name(named.name.replace(rank, f"{1:0{len(rank)}}", 1))
        if int(rank) > 0 or second.exists():
            raise refuse(
                path,
                "holds one tensor-parallel slice of each matrix",
                "join the slices with the conversion script of the model and name the result",
            )
