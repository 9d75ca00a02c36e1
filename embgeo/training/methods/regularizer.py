"""The base classes of regularizers, which act on the loss, the logits or the weights.

This loop serves every method::

    hidden = dropout(model(inputs))
    step = Step(hidden, head(hidden), targets, inputs)
    step.logits = reg.logits(step)
    loss = cross_entropy(step.logits, targets) + reg(step)
    loss.backward()
    optimizer.step()
    reg.after_step(lr)

If `NEEDS` is empty, the penalty depends on weights only: ``reg()`` needs no step, and
``reg.add_gradient()`` between ``backward`` and ``optimizer.step()`` can replace the term of the
loss. What a method does not use is a no-op.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, Self

import torch
from msgspec.structs import fields
from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.training.limits import Settings
from embgeo.training.methods.weights import Source, find_layer, follow, mask_rows, read_weight
from embgeo.training.registry import FROM_SETUP, list_constructors
from embgeo.training.study.record import Role


@dataclass(slots=True)
class Step:
    """Tensors of a training step; `NEEDS` of a method names those that it requires."""

    #: Input of the output layer, after dropout; shape (…, d).
    hidden: Tensor | None = None
    #: Shape (…, N).
    logits: Tensor | None = None
    #: Shape (…); positions with a negative target (−100) do not count.
    targets: Tensor | None = None
    #: Shape (…).
    inputs: Tensor | None = None
    #: The logits of `positions` states and their targets at a time, where those of all are too
    #: large.
    logits_of: Callable[[Tensor, Tensor], Tensor] | None = None
    positions: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """Facts about a run for `Regularizer.attach`."""

    #: Occurrences of each token in the training split alone; shape (N,).
    counts: Tensor | None = None
    #: Rows without a token, such as padding.
    ignore_rows: Sequence[int] = ()
    #: Whether the optimizer is SGD, averaged or not, rather than one of Adam's kind.
    sgd: bool = False
    seed: int = 0
    #: The counts of the source language, if it has an embedding of its own.
    source_counts: Tensor | None = None


class Regularizer(nn.Module):
    """The interface of a method to a training loop; by itself, a method without effect.

    A regularizer refers to the model's weights without owning them: they are neither in its
    `parameters()` nor in its `state_dict()`. Its own state (a discriminator with its optimizer, the
    vector of a power iteration) is in its `state_dict()`, and ``reg.to(device)`` moves it. A run
    resumed from the state dicts of model and regularizer continues with the same numbers.
    """

    #: The name of the method in reports; the publication and the equation.
    NAME: ClassVar[str] = "nothing"
    SOURCE: ClassVar[str]
    #: The settings, where the constructor of a class of embgeo takes them as keywords.
    SETTINGS: ClassVar[type[Settings]]
    __signature__: ClassVar[Signature]
    #: The layer of the model that `attach` passes to the constructor.
    ROLE: ClassVar[Role] = "output"
    #: Differences from the publication, which the report of a run shows.
    DEVIATIONS: ClassVar[tuple[str, ...]] = ()
    #: Fields of `Step` that the method requires.
    NEEDS: ClassVar[tuple[str, ...]] = ()
    #: Whether a method that needs logits can do with those of some positions at a time: `logits`
    #: changes each position alone, and `penalty` takes `Step.logits_of` in place of all logits.
    IN_PARTS: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the settings among the parameters of the class, with their defaults."""
        super().__init_subclass__(**keywords)
        shown = [*signature(cls.__init__).parameters.values()][1:]
        if shown and shown[-1].kind is Parameter.VAR_KEYWORD and hasattr(cls, "SETTINGS"):
            shown[-1:] = [
                Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default)
                for one in fields(cls.SETTINGS)
            ]
        cls.__signature__ = Signature(shown)

    @classmethod
    def attach(cls, model: nn.Module, setup: Setup = Setup(), **settings: Any) -> Self:
        """Make the method for a model, before the optimizer is made and the model is wrapped.

        The model has ``get_input_embeddings()`` and ``get_output_embeddings()``, each of which
        returns a module with a ``weight`` of a row for each token, and the corresponding ``set_…``
        for methods that replace layers; models of transformers have all four. Constructors get
        `find_layers`, and of `setup` what they have a keyword for.
        """
        made = [function for _, function in list_constructors(cls)]
        known = {name for function in made for name in signature(function).parameters}
        own = {name: getattr(setup, name) for name in FROM_SETUP if name in known}
        return cls(*cls.find_layers(model), **{**own, **settings})

    @classmethod
    def find_layers(cls, model: nn.Module) -> tuple[nn.Module, ...]:
        """Find the layer of `ROLE`, for constructors with a positional parameter."""
        known = signature(cls).parameters.values()
        takes_layer = any(p.kind is p.POSITIONAL_OR_KEYWORD for p in known)
        return (find_layer(model, cls.ROLE),) if takes_layer else ()

    def forward(self, step: Step | None = None) -> Tensor:
        """Compute the penalty; the step is optional if `NEEDS` is empty."""
        step = step or Step()
        self.require(step)
        return self.penalty(step)

    def require(self, step: Step) -> None:
        """Raise `BadOption` if the step lacks a field of `NEEDS`."""
        missing = [name for name in self.NEEDS if getattr(step, name) is None]
        if self.IN_PARTS and step.logits_of is not None:
            missing = [name for name in missing if name != "logits"]
        if missing:
            raise BadOption(
                f"{self.NAME} needs {' and '.join(missing)}",
                way_out=f"call it with Step({', '.join(f'{name}=…' for name in self.NEEDS)})",
            )

    def penalty(self, step: Step) -> Tensor:
        """Return a scalar to add to the loss; 0 for methods without a penalty."""
        tensors = (step.hidden, step.logits, step.targets, step.inputs)
        device = next((tensor.device for tensor in tensors if tensor is not None), None)
        return torch.zeros((), device=device)

    def logits(self, step: Step) -> Tensor:
        """Get the logits for the loss: `step.logits`, which some methods change in training mode.

        Call ``reg.eval()`` before an evaluation that uses them.
        """
        if step.logits is None:
            raise BadOption("the step has no logits", way_out="call it with Step(logits=…)")
        return step.logits

    def after_step(self, lr: float | None = None) -> None:
        """Run after each step of the optimizer, for discriminators, retractions, proximal steps.

        `lr`: the learning rate of the embedding, which methods with a step of their own need.
        """

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return groups of the model's parameters with own settings of the optimizer."""
        return []

    def acts_on(self) -> list[Tensor]:
        """Return the model's weights in the penalty, if it depends on weights only; else empty."""
        return []

    def add_gradient(self, scale: float = 1.0) -> Tensor:
        """Add the gradient of the penalty to ``.grad`` of the weights that it acts on.

        Call it once per optimizer step in place of ``loss + reg()``, however many batches are
        accumulated. `scale` is a factor of the gradient, such as the loss scale for float16.
        Returns the penalty, without a graph.
        """
        with torch.enable_grad():
            value: Tensor = self()
            weights = [weight for weight in self.acts_on() if weight.requires_grad]
            if not all(weight.is_leaf for weight in weights):
                raise BadOption(
                    f"{self.NAME} acts on a weight that is made of others",
                    way_out="add reg() to the loss, in place of its gradient to the weight's",
                )
            # Not backward(): wrappers for several processes have hooks that expect one a step.
            found: Sequence[Tensor | None] = ()
            if weights:
                found = torch.autograd.grad(value, weights, allow_unused=True)
        for weight, gradient in zip(weights, found, strict=True):
            if gradient is None:
                continue
            if weight.grad is None:
                weight.grad = scale * gradient
            elif weight.grad.is_sparse and not gradient.is_sparse:
                weight.grad = (scale * gradient).add_(weight.grad)
            else:
                weight.grad.add_(gradient, alpha=scale)
        return value.detach()


class WeightRegularizer(Regularizer):
    """A regularizer of one matrix of the model, with a row for each token.

    `source`: a layer, its weight, or a function that returns the weight.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        # In a tuple, so that the module does not register it as a submodule or parameter.
        self._source = (source,)
        self.weight()

    def keep_rows(self, ignore_rows: Sequence[int]) -> None:
        """Register the mask `kept` of the rows that count; None if all do."""
        kept = mask_rows(len(self.weight()), ignore_rows) if ignore_rows else None
        self.kept: Tensor | None
        self.register_buffer("kept", kept, persistent=False)

    def weight(self) -> Tensor:
        """Return the model's present weight, to whose device the regularizer moves."""
        weight = read_weight(*self._source)
        follow(self, weight)
        return weight

    def acts_on(self) -> list[Tensor]:
        return [] if self.NEEDS else [self.weight()]


class Combined(Regularizer):
    """Several methods at once: penalties are added, logits and hooks are called in order.

    For example, REAL of Inan et al. is ``Combined([Tying(…), AugmentedLoss(…)])``.
    """

    NAME: ClassVar[str] = "several"

    def __init__(self, parts: Sequence[Regularizer]) -> None:
        super().__init__()
        if not parts:
            raise BadOption("no regularizer is given", way_out="give one or more")
        self.parts = nn.ModuleList(parts)
        self.NEEDS = tuple(dict.fromkeys(name for part in parts for name in part.NEEDS))  # type: ignore[misc]
        self.IN_PARTS = all(part.IN_PARTS for part in parts if "logits" in part.NEEDS)  # type: ignore[misc]

    def __iter__(self) -> Iterator[Regularizer]:
        for part in self.parts:
            assert isinstance(part, Regularizer)
            yield part

    def penalty(self, step: Step) -> Tensor:
        values: list[Tensor] = [part(step) for part in self]
        return torch.stack(values).sum()

    def logits(self, step: Step) -> Tensor:
        found = super().logits(step)
        for part in self:
            found = part.logits(replace(step, logits=found))
        return found

    def after_step(self, lr: float | None = None) -> None:
        for part in self:
            part.after_step(lr)

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [group for part in self for group in part.parameter_groups()]

    def acts_on(self) -> list[Tensor]:
        seen = {id(weight): weight for part in self for weight in part.acts_on()}
        return list(seen.values())
