"""The examples that stand in the mappings, run by real Caffe.

``caffeforge test`` proves that writing and reading agree; here a program that is not ours says what the
written layers, and those that the rules for layers read, compute.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.assemble import assemble
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.backends import find
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.coverage import examples_of, layer_examples_of
from caffeforge.runtime.executor import Executor
from caffeforge.runtime.graph import Graph
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.layer_trials import inputs_of as layer_inputs
from caffeforge.runtime.layer_trials import net_of
from caffeforge.runtime.legalize import legalize
from caffeforge.runtime.net import Net
from caffeforge.runtime.rule_tests import difference, graph_of, inputs_of
from tests.e2e.op_cases import renamed
from tests.real_caffe.witness import Witness

Arrays = dict[str, NDArray]


def check(
    net: Net, backend: Backend, inputs: Arrays, expected: Arrays, witness: Witness, folder: Path
) -> None:
    """Compare what a Caffe computes with what is due; every name begins with that of its example."""
    prototxt, caffemodel, _ = write_files(net, backend, folder / "net", "{}")
    floats = {name: array.astype("float32") for name, array in inputs.items()}
    found = witness.run(prototxt, caffemodel, floats, list(expected))
    wrong = {name: difference({name: array}, found) for name, array in expected.items()}
    assert not {name: why for name, why in wrong.items() if why}


def check_ops(
    backend: Backend,
    witness: Witness,
    folder: Path,
    lacks: Collection[str] = (),
    *,
    inherited: bool = False,
) -> int:
    """Run the examples of ops that are not written as layers that the witness `lacks`; return how many ran.

    With `inherited` those of the rules that the backend has from its base run too.
    """
    whole = Graph("examples", [], [], [])
    ran = 0
    inputs: Arrays = {}
    expected: Arrays = {}
    for index, example in enumerate(examples_of(backend)):
        if example.refused is not None or not (inherited or _is_own(example.rule, backend)):
            continue
        graph = renamed(graph_of(example.text, backend), f"{example.subject.replace('.', '_')}{index}")
        if any(call.param.TYPE in lacks for call in legalize(graph, backend)):
            continue
        given = inputs_of(graph)
        inputs |= given
        expected |= Executor(graph, threads=1).run(given)
        whole.inputs += graph.inputs
        whole.outputs += graph.outputs
        whole.nodes += graph.nodes
        ran += 1
    check(assemble(whole, legalize(whole, backend), backend), backend, inputs, expected, witness, folder)
    return ran


def _is_own(rule: str, backend: Backend) -> bool:
    """Tell whether a rule stands in the backend's own mapping, or among the known layers that it has."""
    return rule.split("/")[0] == backend.name or rule.startswith("schemas/known_layers.yaml")


def check_layers(backend: Backend, witness: Witness, folder: Path) -> None:
    whole = Net("examples", [])
    inputs: Arrays = {}
    expected: Arrays = {}
    for index, example in enumerate(layer_examples_of(backend)):
        if example.refused is not None or not _is_own(example.rule, backend):
            continue
        prefix = f"{example.subject}{index}_"
        net = net_of(example, backend, prefix)
        hub = hub_from_net(net, backend)
        if (hub.graph.inputs and not example.bottoms) or "STOCHASTIC" in example.text:
            continue  # it loads data, or Caffe computes it on a GPU only
        given = layer_inputs(example, hub, prefix)
        for place, kind in enumerate(example.bottoms):
            if kind.startswith("bool"):  # marks of sequences: Caffe keeps states from run to run
                given[f"{prefix}bottom{place}"][0] = 0
        inputs |= given
        expected |= Executor(hub.graph, threads=1).run(given)
        whole.layers += net.layers
    check(whole, backend, inputs, expected, witness, folder)


def test_ops_of_bvlc(caffe: Witness, tmp_path: Path) -> None:
    check_ops(find("bvlc"), caffe, tmp_path)


def test_layers_of_bvlc(caffe: Witness, tmp_path: Path) -> None:
    check_layers(find("bvlc"), caffe, tmp_path)


def test_ops_of_bvlc_master(kendryte: Witness, tmp_path: Path) -> None:
    check_ops(find("bvlc_master"), kendryte, tmp_path, lacks=("Clip",))
