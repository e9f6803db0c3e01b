"""Nets of the format V1 (``layers { type: CONVOLUTION }``), upgraded in memory as Caffe does.

The parameter messages are those of today. What changed are the type, which was an enum, and the rates and
names of blobs, which stood in lists of their own.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import Message as Proto

from caffeforge.runtime.errors import FileError

# Names that are not the enum's words in title case without underscores.
_SPELLED: Final = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}
_LISTS: Final = {  # of the old layer -> field of today's ParamSpec
    "param": "name",
    "blob_share_mode": "share_mode",
    "blobs_lr": "lr_mult",
    "weight_decay": "decay_mult",
}
_IMAGES: Final = {
    "Data": ("data_param",),
    "ImageData": ("image_data_param",),
    "WindowData": ("window_data_param",),
}
_TRANSFORMED: Final = ("scale", "mean_file", "crop_size", "mirror")


def layer_type(word: str) -> str:
    """Return today's name of a type of V1, empty for NONE.

    A dialect's own types are spelled by the same rule as Caffe's.
    """
    if word == "NONE":
        return ""
    return _SPELLED.get(word) or "".join(part.capitalize() for part in word.split("_"))


def upgraded_layer(old: Any, new: Any) -> None:
    """Fill the LayerParameter `new` with what the V1LayerParameter `old` says.

    Raises:
        FileError: it sets a field that no layer of today has.
    """
    for field, value in old.ListFields():
        if field.name == "type":
            new.type = layer_type(field.enum_type.values_by_number[value].name)
        elif field.name in _LISTS:
            _upgrade_list(new, _LISTS[field.name], value)
        elif field.name not in new.DESCRIPTOR.fields_by_name:
            raise FileError(f"layer {old.name} sets {field.name}, which layers of today do not have")
        elif isinstance(value, str):
            setattr(new, field.name, value)
        elif isinstance(value, Proto):
            getattr(new, field.name).CopyFrom(value)
        else:
            getattr(new, field.name).extend(value)
    _upgrade_transformation(new)


def _upgrade_transformation(new: Any) -> None:
    """Move what a data layer does to its images to ``transform_param``, which came later."""
    for message in _IMAGES.get(new.type, ()):
        if not new.HasField(message):
            continue
        old = getattr(new, message)
        for name in _TRANSFORMED:
            if name in old.DESCRIPTOR.fields_by_name and old.HasField(name):
                setattr(new.transform_param, name, getattr(old, name))
                old.ClearField(name)


def _upgrade_list(new: Any, name: str, values: Any) -> None:
    for index, value in enumerate(values):
        while len(new.param) <= index:
            new.param.add()
        setattr(new.param[index], name, value)
