"""The layers of a transcoded net, one after the other, with the names of blobs kept where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message as Proto

from caffeforge.runtime.array import Array
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.constraints import net_refusals
from caffeforge.runtime.emit import LayerCall
from caffeforge.runtime.errors import CaffeforgeError, LegalizeError, ReadError
from caffeforge.runtime.graph import Value
from caffeforge.runtime.hub_from_net import free_name, hub_from_net
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.private_pool import PrivatePool
from caffeforge.runtime.prototxt import print_net
from caffeforge.runtime.prototxt_reader import Prototxt
from caffeforge.runtime.transcode.copying import Copier
from caffeforge.runtime.transcode.reading import Reading, read_layer
from caffeforge.runtime.transcode.rewritten import rewrite


class Layers:
    """Builds the target's layers.

    Args:
        text: the source's net; its layers have their weights.
        source: its dialect.
        target: the other one.

    Attributes:
        copied: names of the layers that stayed as they are.
        rewritten: for each other layer, the types of what stands for it.
        notes: what was left out, one sentence each.
        blobs: the weights of each layer of the text that comes out, by index.
    """

    def __init__(self, text: Prototxt, source: Backend, target: Backend) -> None:
        self.prototxt = text
        self.source = source
        self.target = target
        pool = PrivatePool(target)
        self.copier = Copier(source, target, pool.message("LayerParameter"))
        self.net: Any = pool.message("NetParameter")()
        self.copied: list[str] = []
        self.rewritten: dict[str, tuple[str, ...]] = {}
        self.notes: list[str] = list(text.net.notes)
        self.blobs: list[tuple[Array, ...]] = []
        self._values: dict[str, Value] = {}
        self._renamed: dict[str, str] = {}  # blobs of the source that have another name from here on
        self._fixed: set[str] = set()  # blobs whose names must stay: the net's inputs

    def run(self) -> None:
        """Build all layers.

        Raises:
            LegalizeError: the target cannot say some; all are listed.
            ReadError: the source's dialect does not tell what a layer computes.
        """
        net, refused = self.prototxt.net, []
        hub_from_net(net, self.source)  # which says what is wrong with the net itself
        self.net.name = net.name
        for name, shape in net.inputs:
            self._input(name, shape)
        places = {index: place for place, index in enumerate(self.prototxt.indices)}
        for index, proto in self.prototxt.protos.items():
            if index not in places:
                self._unread(proto)
                continue
            try:
                self._layer(net.layers[places[index]], proto)
            except LegalizeError as error:
                refused.append(f"layer {net.layers[places[index]].name}: {error.what}")
        if refused:
            count = "1 layer" if len(refused) == 1 else f"{len(refused)} layers"
            listed = "\n".join(refused)
            raise LegalizeError(
                f"{self.target.name} cannot say {count} of {net.name or 'the net'}:\n{listed}"
            )
        self._take_loose_tops()
        self._refuse_net()
        self.notes += self.copier.notes

    def text(self) -> str:
        """Return the net as prototxt."""
        return text_format.MessageToString(self.net)

    def _refuse_net(self) -> None:
        """Refuse a net whose inputs and outputs the target's chip does not take."""
        net = self.prototxt.net
        inputs, outputs = (
            [self._values[name] for name in names if name in self._values]
            for names in (sorted(self._fixed), net.outputs())
        )
        found = net_refusals(inputs, outputs, self.target)
        if found:
            said = "\n".join(f"  {refused.rule}: {refused.sentence}" for refused in found)
            raise LegalizeError(f"{self.target.name} does not take {net.name or 'the net'} as a net:\n{said}")

    def _input(self, name: str, shape: Sequence[int]) -> None:
        """Declare an input as the target's tools want it: as a layer, or by fields of the net."""
        value = self._values[name] = Value(name, "float32", shape)
        self._fixed.add(name)
        if self.target.net.input is not None:
            self._append(Layer(name, self.target.net.input(value), (), (name,)))
            return
        self.net.input.append(name)
        self.net.input_shape.add().dim.extend(shape)

    def _unread(self, proto: Any) -> None:
        """Copy a layer that inference does without, or leave it out."""
        new: Any = self.copier.copy_unread(proto)
        if new is None:
            self.notes.append(f"layer {proto.name} ({proto.type}), of no matter for inference, is left out")
            return
        self._put(new, (), [*proto.bottom], [*proto.top])
        self.copied.append(proto.name)

    def _layer(self, layer: Layer, proto: Proto) -> None:
        missing = [name for name in layer.bottoms if name not in self._values]
        if missing:
            raise ReadError(f"bottom {missing[0]} is not computed by any layer before", where=layer.name)
        bottoms = [self._values[name] for name in layer.bottoms]
        reading = read_layer(layer, self.source, bottoms, is_source=True)
        copy = self.copier.copy(layer, proto, bottoms, reading)
        if copy is not None:
            self._put(copy, layer.blobs, layer.bottoms, layer.tops)
            self.copied.append(layer.name)
        elif reading.input_shapes:
            for top, shape in zip(layer.tops, reading.input_shapes, strict=True):
                self._input(top, shape)
            self.rewritten[layer.name] = ("input",)
            return
        else:
            try:
                calls = rewrite(layer, self.source, self.target, bottoms)
            except CaffeforgeError:
                self._hold(layer, reading)
                raise
            self._write(layer, calls)
        self._hold(layer, reading)

    def _hold(self, layer: Layer, reading: Reading) -> None:
        """Note what the tops hold from here on."""
        if reading.input_shapes:
            self._fixed.update(layer.tops)
            for top, shape in zip(layer.tops, reading.input_shapes, strict=True):
                self._values[top] = Value(top, "float32", shape)
        for top, value in zip(layer.tops, reading.results, strict=False):
            held = value if value.data is not None else Value(top, value.dtype, value.dims)
            self._values[top] = held

    def _write(self, layer: Layer, calls: Sequence[LayerCall]) -> None:
        """Append the layers that stand for one; what it writes in place keeps its name where that can be."""
        names = {name: self._renamed.get(name, name) for name in layer.bottoms}
        for top in layer.tops:
            inner = top if top not in layer.bottoms else f"{top}@{layer.name}"
            if top not in layer.bottoms:
                names[inner] = top
                self._renamed.pop(top, None)
            elif top in self._fixed or top in self._renamed:
                names[inner] = self._renamed[top] = self._free(f"{top}/{layer.name}")
            else:
                names[top] = self._free(f"{top}/before_{layer.name}")
                self._rename(top, names[top])
                names[inner] = top
        for call in calls:
            ends = [[self._blob(value.name, names) for value in part] for part in (call.bottoms, call.tops)]
            name = self._free_layer(call.name)
            self._append(Layer(name, call.param, tuple(ends[0]), tuple(ends[1]), call.blobs))
        self.rewritten[layer.name] = tuple(call.param.TYPE for call in calls)

    def _blob(self, name: str, names: dict[str, str]) -> str:
        if name not in names:
            names[name] = self._free(name)
        return names[name]

    def _append(self, layer: Layer) -> None:
        """Append a typed layer."""
        net: Any = type(self.net)()
        text_format.Parse(print_net(Net("", [layer])), net)
        self.net.layer.append(net.layer[0])
        self.blobs.append(layer.blobs)

    def _put(self, proto: Any, blobs: tuple[Array, ...], bottoms: Sequence[str], tops: Sequence[str]) -> None:
        """Append a copy, its blobs under the names that they have by now."""
        for top in tops:
            if top not in bottoms:
                self._renamed.pop(top, None)
        for part, given in (("bottom", bottoms), ("top", tops)):
            proto.ClearField(part)
            getattr(proto, part).extend(self._renamed.get(name, name) for name in given)
        self.net.layer.append(proto)
        self.blobs.append(blobs)

    def _rename(self, old: str, new: str) -> None:
        """Give a blob another name in all layers so far."""
        for layer in self.net.layer:
            for part in (layer.bottom, layer.top):
                for index, name in enumerate(part):
                    if name == old:
                        part[index] = new

    def _free(self, name: str) -> str:
        taken = {top for layer in self.net.layer for top in layer.top}
        taken.update(self._values, (top for layer in self.prototxt.net.layers for top in layer.tops))
        return free_name(name, taken)

    def _free_layer(self, name: str) -> str:
        return free_name(name, {layer.name for layer in self.net.layer})

    def _take_loose_tops(self) -> None:
        """Give tops that the source does not have, and that nothing reads, to the layer for them."""
        read = {bottom for layer in self.net.layer for bottom in layer.bottom}
        known = {top for layer in self.prototxt.protos.values() for top in layer.top}  # type: ignore[attr-defined]
        known.update(self._renamed.values())
        loose = [top for layer in self.net.layer for top in layer.top if top not in read | known]
        if not loose or self.target.net.loose_tops is None:
            return
        name = self._free_layer("loose")
        self._append(Layer(name, self.target.net.loose_tops(), tuple(dict.fromkeys(loose))))
