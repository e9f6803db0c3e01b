"""Single layers of a dialect beside each other in one net: our executor against that dialect's Caffe.

Texts are written by hand or taken over from the cases of bvlc; protobuf writes the weights under the
dialect's own schema, so that no code of ours stands between a case and that Caffe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caffeforge.runtime.backends import find
from caffeforge.runtime.loaded import load
from caffeforge.runtime.net import Layer, Net
from caffeforge.runtime.prototxt import print_net
from tests.e2e import layer_audit, vendor
from tests.e2e.layer_cases import SERIES, Floats, LayerCase, Random, difference
from tests.real_caffe.witness import Witness

Maker = Callable[[Random], "Single"]


@dataclass(frozen=True)
class Single:
    """One layer: its type, the text of its parameters, and what it reads and holds.

    Attributes:
        tops: how many it has.
        varies: whether its results differ from place to place, as nearly all do.
    """

    type: str
    text: str = ""
    bottoms: Sequence[Floats] = field(default=(), repr=False)
    blobs: Sequence[Floats] = field(default=(), repr=False)
    tops: int = 1
    varies: bool = True

    def __str__(self) -> str:
        return f"{self.type} {self.text} of {' '.join(str([*bottom.shape]) for bottom in self.bottoms)}"


def of_bvlc(types: Collection[str], series: int = 0, most: int = 100) -> list[Single]:
    """Return the random cases of bvlc's layers as text, up to `most` of a type."""
    found = layer_audit.cases(series)
    return [single(case) for kind in found if kind in types for case in found[kind][:most]]


def single(case: LayerCase) -> Single:
    """Return a case of bvlc as text."""
    printed = print_net(Net("net", [Layer("layer", case.param, (), ())]))
    text = printed.partition(f'type: "{case.param.TYPE}"\n')[2].rpartition("}")[0]
    return Single(case.param.TYPE, text.strip(), case.bottoms, case.blobs, case.tops, case.varies)


def drawn(makers: Mapping[str, Maker], series: int = 0, each: int = 30) -> list[Single]:
    """Return `each` cases of every maker, other ones for another series."""
    token = SERIES.set(series)
    try:
        return [make(Random(seed)) for make in makers.values() for seed in range(each)]
    finally:
        SERIES.reset(token)


def written(cases: Sequence[Single], dialect: str, folder: Path) -> tuple[Path, Path, dict[str, Floats]]:
    """Write the cases as independent branches of one net; return its files and its inputs."""
    lines, inputs, blobs = ['name: "cases"'], {}, {}
    declared = _input(dialect)
    for index, case in enumerate(cases):
        names = [f"x{index}_{place}" for place in range(len(case.bottoms))]
        for name, bottom in zip(names, case.bottoms, strict=True):
            shape = " ".join(f"dim: {size}" for size in bottom.shape)
            lines.append(declared.format(name=name, shape=shape))
            inputs[name] = bottom
        ends = [f'bottom: "{name}"' for name in names] + [f'top: "{name}"' for name in tops_of(index, case)]
        lines.append(f'layer {{ name: "l{index}" type: "{case.type}" {" ".join(ends)} {case.text} }}')
        blobs[f"l{index}"] = case.blobs
    head = [line for line in lines if not line.startswith("layer")]
    layers = [line for line in lines if line.startswith("layer")]
    return *vendor.write(folder, "\n".join(head + layers) + "\n", blobs, dialect), inputs


def _input(dialect: str) -> str:
    """Return how an input is written: by a layer, or by fields of the net where there is no such layer."""
    if "Input" in find(dialect).readers:
        return 'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {shape} }} }} }}'
    return 'input: "{name}" input_shape {{ {shape} }}'


def tops_of(index: int, case: Single) -> list[str]:
    """Return the names of a case's tops."""
    return [f"y{index}_{place}" for place in range(case.tops)]


def errors(cases: Sequence[Single], dialect: str, witness: Witness, folder: Path) -> dict[str, float]:
    """Run the cases in the witness and by our rules; return the largest error of each type, of the scale."""
    prototxt, caffemodel, inputs = written(cases, dialect, folder)
    names = [name for index, case in enumerate(cases) for name in tops_of(index, case)]
    due = witness.run(prototxt, caffemodel, inputs, names)
    found = load(prototxt, caffemodel, find(dialect)).run(inputs, names)
    worst: dict[str, float] = defaultdict(float)
    for index, case in enumerate(cases):
        for name in tops_of(index, case):
            assert not case.varies or due[name].std() > 0, f"{case}: all results are alike"
            worst[case.type] = max(worst[case.type], difference(found[name], due[name]))
    return dict(worst)
