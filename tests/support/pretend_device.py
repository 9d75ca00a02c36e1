"""A pretend device: tensors whose values lie on the CPU, and which may not meet those of the CPU.

It stands in for a GPU where none is at hand. Copies between both devices are allowed, and so are
numbers without dimensions and indices of the CPU, as with CUDA; everything else that mixes devices
raises :class:`MixedDevices`. Autocast is imitated. What it cannot show: kernels, memory, speed.

Importing this registers the device in the whole process, for good.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NAME = "pretend"
ATEN = torch.ops.aten

#: What autocast runs in its own precision, and what in float32; not all of torch, but what
#: language models call.
SHORT = ("linear", "matmul", "mm", "addmm", "bmm", "baddbmm", "scaled_dot_product_attention")
SINGLE = ("log_softmax.int", "softmax.int", "logsumexp", "nll_loss", "layer_norm", "sum", "cumsum")
PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
#: Kernels that take indices of the CPU.
INDEXING = (ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default)


class MixedDevices(RuntimeError):
    """A kernel was given tensors of both devices."""


class Backend(backend_registration._DummyBackendModule):  # type: ignore[misc]
    """What torch asks of a device."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def mem_get_info(self, _device: Any = None) -> tuple[int, int]:
        """Free and whole memory, as of CUDA."""
        return 3 * 2**30, 4 * 2**30


def register_autocast() -> list[torch.library.Library]:
    """Autocast for the device; it lasts as long as the result."""
    rest = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
    rest.fallback(torch.library.fallthrough_kernel)
    chosen = torch.library.Library("aten", "IMPL", "AutocastPrivateUse1")
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def register(name: str, dtype: torch.dtype) -> None:
        packet, _, overload = name.partition(".")
        kernel = getattr(getattr(ATEN, packet), overload or "default")

        def cast(leaf: Any) -> Any:
            floating = isinstance(leaf, Pretended) and leaf.is_floating_point()
            return leaf.to(dtype) if floating and leaf.dtype != torch.float64 else leaf

        def call(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(key):
                return kernel(*tree_map(cast, args), **tree_map(cast, kwargs))

        chosen.impl(name, call)

    for names, dtype in ((SHORT, torch.bfloat16), (SINGLE, torch.float32)):
        for name in names:
            register(name, dtype)
    return [rest, chosen]


class Pretended(torch.Tensor):
    """A tensor of the pretend device; `held` has its values."""

    held: torch.Tensor
    is_cuda = True

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return call_kernel(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.held.tolist()

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Files are read with ``map_location="cpu"``, which puts the tensor there."""
        return self.held.__reduce_ex__(protocol)


def hold(value: Any) -> Any:
    plain = isinstance(value, torch.Tensor) and not isinstance(value, Pretended)
    return Pretended(value) if plain else value


def release(value: Any) -> Any:
    return value.held if isinstance(value, Pretended) else value


def call_kernel(func: Any, args: Any, kwargs: Any) -> Any:
    """Run a kernel on the values, or raise :class:`MixedDevices`."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    ours = [one for one in tensors if isinstance(one, Pretended)]
    named = kwargs.get("device")
    on_device = bool(ours) if named is None else torch.device(named).type == NAME
    copies = func in (ATEN._to_copy.default, ATEN.copy_.default)
    if ours and not copies:
        require_one_device(func, args, tensors)
    if on_device and kwargs.get("generator") is not None:
        raise MixedDevices(f"{func} draws on the device with a generator of the CPU")
    if func is ATEN._fused_sdp_choice.default:
        return 0  # attention from its parts
    given = {name: value for name, value in kwargs.items() if name != "pin_memory"}
    if named is not None and on_device:
        given["device"] = torch.device("cpu")
    found = func(*tree_map(release, args), **tree_map(release, given))
    if func is ATEN._to_copy.default and ours and not on_device and found is ours[0].held:
        found = found.clone()
    written = find_written(func, args, kwargs)
    if written is not None:
        return written
    return tree_map(hold, found) if on_device else found


def require_one_device(func: Any, args: Any, tensors: list[torch.Tensor]) -> None:
    foreign = [one for one in tensors if not isinstance(one, Pretended)]
    if func in INDEXING and isinstance(args[0], Pretended):
        foreign = [one for one in args[2:3] if not isinstance(one, Pretended)]
    writes = func._schema.is_mutable and not isinstance(tensors[0], Pretended)
    if writes or any(one.dim() for one in foreign):
        shapes = [tuple(one.shape) for one in foreign]
        raise MixedDevices(f"{func} on the device is given tensors of the CPU: {shapes}")


def find_written(func: Any, args: Any, kwargs: Any) -> Any:
    """The tensor that a kernel changed in place and returns; None for others."""
    if not func._schema.is_mutable or len(func._schema.returns) != 1:
        return None
    for place, one in enumerate(func._schema.arguments):
        if one.alias_info is not None and one.alias_info.is_write:
            return args[place] if place < len(args) else kwargs[one.name]
    return None


class OnDevice(TorchDispatchMode):  # type: ignore[misc]
    """Makes new tensors of the device ours."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return call_kernel(func, args, kwargs or {})


class Functions(TorchFunctionMode):  # type: ignore[misc]
    """Functions of torch that go past the dispatcher, or to a kernel that real devices have."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func is torch.tensor:
            device = given.pop("device", None)
            return func(*args, **given).to(device or "cpu")
        if func in PRODUCTS and args[0].dim() == 1 and args[1].dim() == 2:
            # Torch would change the shape of a product in place.
            return torch.mv(args[1].t(), args[0])
        if func is torch.lstm and isinstance(args[0], Pretended):
            return run_lstm(*args)
        return func(*args, **given)


def run_lstm(given: Any, state: Any, weights: Any, *_: Any) -> Any:
    """One LSTM layer from its equations; its arguments have to be alike, as on a GPU."""
    alike = {(one.device.type, one.dtype) for one in (given, *state, *weights)}
    if len(alike) > 1:
        raise MixedDevices(f"an LSTM is given {sorted(map(str, alike))}")
    of_input, of_state, *biases = weights
    h, c = (part[0] for part in state)
    found = []
    for x in given:
        i, f, g, o = (x @ of_input.t() + h @ of_state.t() + sum(biases)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        found.append(h)
    return torch.stack(found), h[None], c[None]


@contextmanager
def pretend() -> Iterator[torch.device]:
    """The pretend device, for what runs in the block."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    with ExitStack() as stack:
        stack.callback(torch.__future__.set_swap_module_params_on_conversion, False)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(Functions())
        stack.enter_context(OnDevice())
        yield DEVICE


backend_registration._setup_privateuseone_for_python_backend(NAME, Backend())
DEVICE = torch.device(NAME, 0)
AUTOCAST = register_autocast()
