"""Regularizers: a term of the loss, a change of the logits, or work after a step.

A loop that uses everything a method may do reads::

    hidden = dropout(model(inputs))
    step = Step(hidden, head(hidden), targets, inputs)
    step.logits = reg.logits(step)
    loss = cross_entropy(step.logits, targets) + reg(step)
    loss.backward()
    reg.before_step(lr)
    optimizer.step()
    reg.after_step(lr)

A method whose `NEEDS` is empty looks at weights only: ``loss = cross_entropy + reg()`` is enough,
or ``reg.add_gradient()`` between ``backward`` and the optimizer's step. Whatever a method does not
do is a no-op, so that a loop can call all of it for every method, in this order.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, get_type_hints

import torch
from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.training.checks import list_defaults
from embgeo.training.methods.weights import Source, Weight, find_layer
from embgeo.training.registry import file_of
from embgeo.training.study.training import Role


@dataclass(slots=True)
class Step:
    """Values of a training step; `NEEDS` of a method names those that it requires.

    Parameters
    ----------
    hidden : Tensor, optional
        What the output layer is applied to, after dropout; shape (…, d).
    logits : Tensor, optional
        Shape (…, N).
    targets : Tensor of int64, optional
        Shape (…); positions with a negative target (−100) do not count.
    inputs : Tensor of int64, optional
        Shape (…).
    """

    hidden: Tensor | None = None
    logits: Tensor | None = None
    targets: Tensor | None = None
    inputs: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """Values for `Regularizer.attach` in addition to the model.

    Parameters
    ----------
    counts : Tensor, optional
        How often each token occurs in the training split (never in the others); shape (N,).
    ignore_rows : sequence of int
        Rows that stand for no token, such as padding.
    sgd : bool
        Whether plain (averaged) SGD trains the model rather than an optimizer of Adam's kind.
    seed : int
        For what is drawn at random.
    source_counts : Tensor, optional
        Of a model that has an embedding of its own for the source language: how often each of its
        tokens occurs; shape of that embedding's rows.
    """

    counts: Tensor | None = None
    ignore_rows: Sequence[int] = ()
    sgd: bool = False
    seed: int = 0
    source_counts: Tensor | None = None


class Regularizer(nn.Module):
    """A method, as a training loop uses it.

    A regularizer refers to the model's weights without owning them: they are not among its
    `parameters()` nor in its `state_dict()`. What it does own (a discriminator, the state of a
    power iteration, the state of an optimizer inside) is in its `state_dict()`, and is moved by
    ``reg.to(device)``. Saved and loaded with the model, it continues to the same numbers.

    Attributes
    ----------
    NAME : str
        As recipes and reports name the method.
    SOURCE : str
        The publication and the equation.
    DEVIATIONS : tuple of str
        Each way in which this is not what was published; shown in the report of a run.
    NEEDS : tuple of str
        Fields of `Step` that the method cannot do without.
    ROLE : {"input", "output"}
        The layer of a model that `attach` puts the method on.
    terms : dict of str to Tensor
        The last value of the penalty by name, without a graph, and of parts that have a name of
        their own; empty of a method without a penalty.
    """

    NAME: ClassVar[str] = "nothing"
    SOURCE: ClassVar[str]
    ROLE: ClassVar[Role] = "output"
    DEVIATIONS: ClassVar[tuple[str, ...]] = ()
    NEEDS: ClassVar[tuple[str, ...]] = ()
    terms: Mapping[str, Tensor] = MappingProxyType({})

    @classmethod
    def attach(cls, model: nn.Module, setup: Setup = Setup(), **settings: Any) -> Self:
        """Build the method for a model, which the method may change.

        Parameters
        ----------
        model : Module
            With ``get_input_embeddings()`` and ``get_output_embeddings()``, each giving a module
            with a ``weight`` of a row for each token, and the two corresponding ``set_…`` for
            methods that replace them; models of transformers have all four. Call it before the
            optimizer is made and the model is wrapped for several devices.
        setup : Setup
            The constructor gets what it has a parameter for: ``ignore_rows`` and ``seed``; the
            layer of `ROLE`, if it has a parameter that is not keyword-only.
        **settings
            Those of the method's constructor.
        """
        known = inspect.signature(cls).parameters
        own = {name: getattr(setup, name) for name in ("ignore_rows", "seed") if name in known}
        takes_layer = any(p.kind is p.POSITIONAL_OR_KEYWORD for p in known.values())
        layer = (find_layer(model, cls.ROLE),) if takes_layer else ()
        return cls(*layer, **{**own, **settings})

    def forward(self, step: Step | None = None) -> Tensor:
        """The penalty; ``reg()`` where `NEEDS` is empty.

        Raises
        ------
        BadOption
            The step lacks something that the method needs.
        """
        step = step or Step()
        self.require(step)
        self.terms = {}
        value = self.penalty(step)
        if not isinstance(value, Tensor) or value.ndim:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise BadOption(
                f"the penalty of {self.NAME} is {shape}",
                where=file_of(self),
                way_out="give a tensor without dimensions",
            )
        if value.requires_grad:
            self.terms = {**self.terms, self.NAME: value.detach()}
        return value

    def numbers(self) -> dict[str, float]:
        """Values that a run logs in addition to the penalty, by name."""
        return {}

    def require(self, step: Step) -> None:
        """`BadOption` if the step lacks something of `NEEDS`."""
        missing = [name for name in self.NEEDS if getattr(step, name) is None]
        if missing:
            raise BadOption(
                f"{self.NAME} needs {' and '.join(missing)}",
                way_out=f"call it with Step({', '.join(f'{name}=…' for name in self.NEEDS)})",
            )

    def penalty(self, step: Step) -> Tensor:
        """A scalar to add to the loss; 0 where the method acts elsewhere."""
        return torch.zeros((), device=find_device(step))

    def logits(self, step: Step) -> Tensor:
        """The logits to train on; `step.logits` unless the method changes them.

        Only while the regularizer is in training mode: evaluate with ``reg.eval()``, or without it.
        """
        if step.logits is None:
            raise BadOption("the step has no logits", way_out="call it with Step(logits=…)")
        return step.logits

    def before_step(self, lr: float | None = None) -> None:
        """Between ``backward`` and the optimizer's step, once per optimizer step.

        Parameters
        ----------
        lr : float, optional
            The embedding's learning rate, for methods that take a step of their own.
        """

    def after_step(self, lr: float | None = None) -> None:
        """After the optimizer's step: the discriminator's update, retractions, proximal steps.

        Parameters
        ----------
        lr : float, optional
            The embedding's learning rate, for methods that take a step of their own.

        Raises
        ------
        BadOption
            The method needs the learning rate, and it is not given.
        """

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters of the model with optimizer settings of their own.

        Groups as torch's optimizers take them, such as one without weight decay. What is in none
        of them goes where it would go anyway; a discriminator trains itself and is in none.
        """
        return []

    def acts_on(self) -> list[Tensor]:
        """The weights of the model that the penalty depends on, if on nothing but weights."""
        return []

    def extra_repr(self) -> str:
        """The settings: keywords of the constructor that are kept under their names."""
        shown = [name for name in list_settings(type(self)) if hasattr(self, name)]
        return ", ".join(f"{name}={getattr(self, name)}" for name in shown)

    def add_gradient(self, scale: float = 1.0) -> Tensor:
        """Add the gradient of the penalty to ``.grad`` of the weights that it acts on.

        In place of ``loss + reg()``, once per optimizer step: independent of how many batches are
        accumulated and of how gradients are averaged over processes.

        Parameters
        ----------
        scale : float
            Multiplies the gradient, such as that of a loss that is scaled for float16.

        Returns
        -------
        Tensor
            The penalty, without a graph.

        Raises
        ------
        BadOption
            The method needs a `Step`, or the weight is itself computed, as by a parametrization.
        """
        with torch.enable_grad():
            value: Tensor = self()
            weights = [weight for weight in self.acts_on() if weight.requires_grad]
            if not all(weight.is_leaf for weight in weights):
                raise BadOption(
                    f"{self.NAME} acts on a weight that is made of others",
                    way_out="add reg() to the loss, in place of its gradient to the weight's",
                )
            # Not backward(): the hooks of a wrapper for several processes expect one backward a
            # step, and would take this for another.
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
    """A regularizer of one matrix, which belongs to the model.

    Parameters
    ----------
    source : Module, Tensor or callable
        Where the weight is found, a row for each token.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.weight = Weight(source)

    def acts_on(self) -> list[Tensor]:
        return [] if self.NEEDS else [self.weight()]


class MethodSetting(NamedTuple):
    """A keyword of a regularizer: its default and its type."""

    default: Any
    hint: Any


def list_settings(kind: type[Regularizer]) -> dict[str, MethodSetting]:
    """Keyword-only parameters of `attach` and of the constructors that it passes them on to."""
    found: dict[str, MethodSetting] = {}
    for each in kind.__mro__:
        for name in ("__init__", "attach"):
            if issubclass(each, Regularizer) and name in vars(each):
                function = getattr(each, name)
                hints = get_type_hints(function)
                defaults = list_defaults(function).items()
                found = {
                    key: MethodSetting(v, hints.get(key, type(v))) for key, v in defaults
                } | found
    return found


def find_device(step: Step) -> torch.device:
    """Device of the tensors of a step; the CPU without tensors."""
    for field in fields(step):
        tensor: Tensor | None = getattr(step, field.name)
        if tensor is not None:
            return tensor.device
    return torch.device("cpu")


Value = TypeVar("Value")


class Several(Regularizer):
    """The penalties are added, logits and steps are taken one after the other.

    The paper's REAL, for one, is ``Several([Tying(…), AugmentedLoss(…)])``.

    Parameters
    ----------
    parts : sequence of Regularizer
    prefixes : sequence of str, optional
        What the names of terms and numbers of each part begin with, where two have the same.

    Raises
    ------
    BadOption
        No part at all.
    """

    NAME: ClassVar[str] = "several"
    SOURCE: ClassVar[str] = "as of its parts"

    def __init__(self, parts: Sequence[Regularizer], prefixes: Sequence[str] = ()) -> None:
        super().__init__()
        self.prefixes = tuple(prefixes) or ("",) * len(parts)
        if not parts:
            raise BadOption("no regularizer is given", way_out="give one or more")
        self.parts = nn.ModuleList(parts)
        self.NEEDS = tuple(dict.fromkeys(name for part in parts for name in part.NEEDS))  # type: ignore[misc]
        self.DEVIATIONS = tuple(line for part in parts for line in part.DEVIATIONS)  # type: ignore[misc]

    def __iter__(self) -> Iterator[Regularizer]:
        for part in self.parts:
            assert isinstance(part, Regularizer)
            yield part

    def forward(self, step: Step | None = None) -> Tensor:
        value = super().forward(step)
        self.terms = self.collect(part.terms for part in self)
        return value

    def penalty(self, step: Step) -> Tensor:
        values: list[Tensor] = [part(step) for part in self]
        return torch.stack(values).sum()

    def numbers(self) -> dict[str, float]:
        return self.collect(part.numbers() for part in self)

    def collect(self, found: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
        """Values of the parts, under their names."""
        return {
            f"{prefix}{name}": value
            for prefix, own in zip(self.prefixes, found, strict=True)
            for name, value in own.items()
        }

    def logits(self, step: Step) -> Tensor:
        found = super().logits(step)
        for part in self:
            found = part.logits(replace(step, logits=found))
        return found

    def before_step(self, lr: float | None = None) -> None:
        for part in self:
            part.before_step(lr)

    def after_step(self, lr: float | None = None) -> None:
        for part in self:
            part.after_step(lr)

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [group for part in self for group in part.parameter_groups()]

    def acts_on(self) -> list[Tensor]:
        seen = {id(weight): weight for part in self for weight in part.acts_on()}
        return list(seen.values())
