"""Every layer type that Caffe runs for inference, in random settings: our executor against Caffe.

``python -m tests.e2e.layer_audit [SERIES]`` prints for each type the settings and the largest error.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.loaded import load
from tests.e2e import (
    test_bvlc_layers_activations,
    test_bvlc_layers_moves,
    test_bvlc_layers_recurrent,
    test_bvlc_layers_sums,
    test_bvlc_layers_windows,
)
from tests.e2e.layer_cases import SERIES, LayerCase, difference, net_of, tops_of
from tests.real_caffe.witness import CAFFE, Witness

TABLES: Sequence[Mapping[str, Callable[[], list[LayerCase]]]] = (
    test_bvlc_layers_activations.CASES,
    test_bvlc_layers_moves.CASES,
    test_bvlc_layers_recurrent.CASES,
    test_bvlc_layers_sums.CASES,
    test_bvlc_layers_windows.CASES,
)
# They compute nothing, or load what the tests give by an Input.
NO_RESULT = frozenset({"Input", "Silence", *BACKEND.net.data})


def types() -> list[str]:
    """Return the types that a net for inference may have."""
    return sorted(set(BACKEND.readers) - NO_RESULT)


def cases(series: int) -> dict[str, list[LayerCase]]:
    """Return random settings of each type; those of series 0 are the ones that all tests use."""
    token = SERIES.set(series)
    try:
        found: dict[str, list[LayerCase]] = defaultdict(list)
        for table in TABLES:
            for make in table.values():
                for case in make():
                    found[case.param.TYPE].append(case)
        return dict(found)
    finally:
        SERIES.reset(token)


def errors(given: Mapping[str, Sequence[LayerCase]], witness: Witness, folder: Path) -> dict[str, float]:
    """Return for each type the largest error as a part of a result's scale."""
    flat = [case for kind in given.values() for case in kind]
    net, inputs = net_of(flat)
    prototxt, caffemodel, _ = write_files(net, BACKEND, folder / "net", "{}\n")
    names = [name for index, case in enumerate(flat) for name in tops_of(index, case)]
    due = witness.run(prototxt, caffemodel, inputs, names)
    found = load(prototxt, caffemodel, BACKEND).run(inputs, names)
    worst: dict[str, float] = dict.fromkeys(given, 0.0)
    for index, case in enumerate(flat):
        for name in tops_of(index, case):
            kind = case.param.TYPE
            worst[kind] = max(worst[kind], difference(found[name], due[name]))
    return worst


def main() -> None:
    given = cases(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    with tempfile.TemporaryDirectory() as folder:
        worst = errors(given, CAFFE, Path(folder))
    for kind in types():
        print(f"{kind:14} {len(given[kind]):4} settings   {worst[kind]:.1e} of scale")


if __name__ == "__main__":
    main()
