"""Nets of the oldest format, V0 (``layers { layer { type: "conv" } }``), upgraded in memory as Caffe does.

One message held the parameters of all types. Padding was a layer of its own, whose width goes to the
convolution or pooling behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from caffeforge.runtime.errors import FileError

TYPES: Final = {
    "accuracy": "Accuracy",
    "bnll": "BNLL",
    "concat": "Concat",
    "conv": "Convolution",
    "data": "Data",
    "dropout": "Dropout",
    "euclidean_loss": "EuclideanLoss",
    "flatten": "Flatten",
    "hdf5_data": "HDF5Data",
    "hdf5_output": "HDF5Output",
    "im2col": "Im2col",
    "images": "ImageData",
    "infogain_loss": "InfogainLoss",
    "innerproduct": "InnerProduct",
    "lrn": "LRN",
    "multinomial_logistic_loss": "MultinomialLogisticLoss",
    "pool": "Pooling",
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "softmax": "Softmax",
    "softmax_loss": "SoftmaxWithLoss",
    "split": "Split",
    "tanh": "TanH",
    "window_data": "WindowData",
}
# Field of V0 -> type -> the field of today, or both message and field where the name is another.
_CONV_AND_FC: Final = ("conv", "innerproduct")
_MESSAGES: Final = {
    "concat": "concat_param",
    "conv": "convolution_param",
    "data": "data_param",
    "dropout": "dropout_param",
    "hdf5_data": "hdf5_data_param",
    "images": "image_data_param",
    "infogain_loss": "infogain_loss_param",
    "innerproduct": "inner_product_param",
    "lrn": "lrn_param",
    "pool": "pooling_param",
    "window_data": "window_data_param",
}
_FIELDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "num_output": ("num_output", _CONV_AND_FC),
    "biasterm": ("bias_term", _CONV_AND_FC),
    "weight_filler": ("weight_filler", _CONV_AND_FC),
    "bias_filler": ("bias_filler", _CONV_AND_FC),
    "pad": ("pad", ("conv", "pool")),
    "kernelsize": ("kernel_size", ("conv", "pool")),
    "group": ("group", ("conv",)),
    "stride": ("stride", ("conv", "pool")),
    "pool": ("pool", ("pool",)),
    "dropout_ratio": ("dropout_ratio", ("dropout",)),
    "local_size": ("local_size", ("lrn",)),
    "alpha": ("alpha", ("lrn",)),
    "beta": ("beta", ("lrn",)),
    "k": ("k", ("lrn",)),
    "source": ("source", ("data", "hdf5_data", "images", "window_data", "infogain_loss")),
    "batchsize": ("batch_size", ("data", "hdf5_data", "images", "window_data")),
    "rand_skip": ("rand_skip", ("data", "images")),
    "shuffle_images": ("shuffle", ("images",)),
    "new_height": ("new_height", ("images",)),
    "new_width": ("new_width", ("images",)),
    "concat_dim": ("concat_dim", ("concat",)),
    "det_fg_threshold": ("fg_threshold", ("window_data",)),
    "det_bg_threshold": ("bg_threshold", ("window_data",)),
    "det_fg_fraction": ("fg_fraction", ("window_data",)),
    "det_context_pad": ("context_pad", ("window_data",)),
    "det_crop_mode": ("crop_mode", ("window_data",)),
}
_TRANSFORM: Final = {  # of any type
    "scale": "scale",
    "meanfile": "mean_file",
    "cropsize": "crop_size",
    "mirror": "mirror",
}
_LISTS: Final = {"blobs_lr": "lr_mult", "weight_decay": "decay_mult"}  # -> field of today's ParamSpec


def is_v0(layers: Sequence[Any]) -> bool:
    """Tell whether a net's `layers` hold one of the oldest format, for which Caffe then takes them all."""
    return any(_has(layer, "layer") for layer in layers)


@dataclass
class Unpadded:
    """What is left of a net's layers without those of type padding.

    Attributes:
        layers: by index among the given ones, in order.
        faults: what padding cannot be given to, by index.
    """

    layers: dict[int, Any] = field(default_factory=dict)
    faults: dict[int, FileError] = field(default_factory=dict)


def without_padding(layers: Sequence[Any]) -> Unpadded:
    """Give the width of each padding layer to the convolutions and poolings that read it."""
    result = Unpadded()
    sources: dict[str, Any] = {}  # blob -> the padding layer that computes it
    for index, given in enumerate(layers):
        kind = given.layer.type
        if kind != "padding":
            result.layers[index] = given
        for position, bottom in enumerate(given.bottom):
            source = sources.get(bottom)
            if source is None:
                continue
            if reason := _no_place(given, source):
                result.faults[index] = FileError(f"layer {given.layer.name} reads padding: {reason}")
                continue
            changed = type(given)()
            changed.CopyFrom(given)
            changed.layer.pad = source.layer.pad
            changed.bottom[position] = source.bottom[0]
            result.layers[index] = changed
        for top in given.top:
            sources.pop(top, None)
            if kind == "padding":
                sources[top] = given
    return result


def _no_place(reader: Any, padding: Any) -> str:
    """Return why a layer cannot take the padding that it reads, empty if it can."""
    if reader.layer.type not in ("conv", "pool"):
        return f"only conv and pool can, it is of type {reader.layer.type!r}"
    if len(reader.bottom) != 1 or len(padding.bottom) != 1 or len(padding.top) != 1:
        return "it and the padding layer must have one bottom each, and the padding layer one top"
    return ""


def upgrade(connection: Any, new: Any) -> None:
    """Fill the LayerParameter `new` with what a layer of V0 says; its blobs are left out.

    Raises:
        FileError: the type is unknown, or a field is set that the type does not have.
    """
    old = connection.layer
    if not _has(connection, "layer"):
        raise FileError("a layer of a later format stands among those of the oldest (V0)")
    if old.type not in TYPES:
        raise FileError(f"layer {old.name} has type {old.type!r}, which the oldest format (V0) does not have")
    new.name, new.type = old.name, TYPES[old.type]
    new.bottom.extend(connection.bottom)
    new.top.extend(connection.top)
    for descriptor, value in old.ListFields():
        word = descriptor.name
        name, kinds = _FIELDS.get(word, ("", ()))
        if word in _LISTS:
            for position, number in enumerate(value):
                while len(new.param) <= position:
                    new.param.add()
                setattr(new.param[position], _LISTS[word], number)
        elif word in _TRANSFORM:
            setattr(new.transform_param, _TRANSFORM[word], value)
        elif word == "hdf5_output_param" and old.type == "hdf5_output":
            new.hdf5_output_param.CopyFrom(value)
        elif old.type in kinds:
            _put(getattr(new, _MESSAGES[old.type]), name, value)
        elif word not in ("name", "type", "blobs"):
            raise FileError(f"layer {old.name} sets {word}, which its type {old.type} does not have")


def _put(message: Any, name: str, value: Any) -> None:
    """Set a field of today, which may be repeated where V0 had one number, or an equal message."""
    target = message.DESCRIPTOR.fields_by_name[name]
    if target.is_repeated:
        getattr(message, name).append(value)
    elif target.message_type is not None:
        getattr(message, name).CopyFrom(value)
    else:
        setattr(message, name, value)


def _has(message: Any, name: str) -> bool:
    return name in message.DESCRIPTOR.fields_by_name and message.HasField(name)
