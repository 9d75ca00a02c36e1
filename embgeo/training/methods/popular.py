"""Frequent and rare tokens, by counts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.core.settings import parse_value
from embgeo.training.limits import POPULAR, Proper
from embgeo.training.methods.regularizer import Setup, WeightRegularizer
from embgeo.training.methods.weights import mask_rows


def popular_rows(counts: Tensor, share: float = POPULAR, ignore_rows: Sequence[int] = ()) -> Tensor:
    """Return the mask of the most frequent tokens, as in an analysis with these counts.

    `counts`: occurrences of each token in the training split, shape (N,). `share`: of the
    vocabulary, not of the occurrences; of tokens with equal counts, those of earlier rows come
    first. `ignore_rows`: rows without a token, such as padding, which are False in the mask.
    """
    share = parse_value(share, Proper, "share")
    kept = torch.nonzero(mask_rows(len(counts), ignore_rows)).squeeze(1)
    if len(kept) < 2:
        raise BadOption(f"{len(kept)} rows are not two classes", way_out="ignore fewer rows")
    order = kept[torch.argsort(counts.cpu()[kept], descending=True, stable=True)]
    popular = torch.zeros(len(counts), dtype=torch.bool)
    popular[order[: min(max(1, round(share * len(kept))), len(kept) - 1)]] = True
    return popular


def classes(n: int, popular: Tensor, ignore_rows: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
    """Return the row numbers of popular and of rare tokens; ignored rows are in neither class.

    `BadOption` for an empty class, or a mask that is not a boolean for each row.
    """
    if popular.dtype != torch.bool or popular.shape != (n,):
        raise BadOption(
            f"popular has shape {tuple(popular.shape)} and type {popular.dtype}",
            way_out=f"give {n} booleans, such as popular_rows(counts)",
        )
    kept = mask_rows(n, ignore_rows)
    popular = popular.cpu()
    found = torch.nonzero(popular & kept).squeeze(1), torch.nonzero(~popular & kept).squeeze(1)
    for name, rows in zip(("popular", "rare"), found, strict=True):
        if not len(rows):
            raise BadOption(f"no row is {name}", way_out="give a mask with both classes")
    return found


class ClassRegularizer(WeightRegularizer):
    """A regularizer of the input embedding with classes of rare and frequent rows.

    Parameters
    ----------
    share : float
        Of `attach`: share of the tokens, most frequent first, that form the class of frequent rows.
    """

    ROLE = "input"

    @classmethod
    def attach(
        cls, model: nn.Module, setup: Setup = Setup(), *, share: float = POPULAR, **settings: Any
    ) -> Self:
        """Attach to the input embedding, where the `share` most frequent tokens form one class.

        Tokens that never occur are in neither class. The embedding of one language has many of them
        if the vocabulary is that of two.
        """
        if setup.counts is None:
            raise BadOption(
                f"{cls.NAME} needs counts to separate rare rows from frequent ones",
                way_out="give the counts of the training split",
            )
        counts = setup.counts
        never = torch.nonzero(counts == 0).squeeze(1).tolist()
        setup = replace(setup, ignore_rows=(*setup.ignore_rows, *never))
        popular = popular_rows(counts, share, setup.ignore_rows)
        return super().attach(model, setup, popular=popular, **settings)
