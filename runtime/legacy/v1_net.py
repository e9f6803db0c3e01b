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
        FileError: it is a layer of the oldest format (V0), or sets a field that no layer of today has.
    """
    for field, value in old.ListFields():
        if field.name == "layer":
            raise FileError(
                f"layer {old.layer.name} is of the oldest format (V0)",
                hint="upgrade it with Caffe's upgrade_net_proto_text (and upgrade_net_proto_binary)",
            )
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


def _upgrade_list(new: Any, name: str, values: Any) -> None:
    for index, value in enumerate(values):
        while len(new.param) <= index:
            new.param.add()
        setattr(new.param[index], name, value)
