"""Writing in place: only where nothing else reads what is written over."""

from __future__ import annotations

from caffeforge.generated.bvlc import layers
from caffeforge.runtime.in_place import run_in_place
from caffeforge.runtime.message import LayerParam
from caffeforge.runtime.net import Layer, Net

TYPES, VIEWS = ("ReLU", "Dropout"), ("Flatten",)


def net(*rows: tuple[LayerParam, str, str]) -> Net:
    first = Layer("x", layers.Input(), (), ("x",))
    found = [
        Layer(tops, p, tuple(bottoms.split()), tuple(tops.split()), source=tops) for p, bottoms, tops in rows
    ]
    return Net("n", [first, *found])


def blobs(given: Net, *outputs: str) -> list[tuple[str, str]]:
    run_in_place(given, TYPES, VIEWS, outputs)
    return [(" ".join(layer.bottoms), " ".join(layer.tops)) for layer in given.layers[1:]]


CONV, RELU, DROP, FLAT, ADD = (
    layers.Convolution(num_output=1),
    layers.ReLU(),
    layers.Dropout(),
    layers.Flatten(),
    layers.Eltwise(),
)


def test_a_chain_writes_over_the_first_blob() -> None:
    given = net((CONV, "x", "a"), (RELU, "a", "b"), (DROP, "b", "c"), (CONV, "c", "y"))
    assert blobs(given, "y") == [("x", "a"), ("a", "a"), ("a", "a"), ("a", "y")]
    assert [layer.source for layer in given.layers[1:]] == ["", "", "c", "y"]


def test_an_output_keeps_its_name() -> None:
    given = net((CONV, "x", "a"), (RELU, "a", "b"), (DROP, "b", "c"))
    assert blobs(given, "c") == [("x", "c"), ("c", "c"), ("c", "c")]


def test_a_blob_with_another_reader_is_not_written_over() -> None:
    given = net((CONV, "x", "a"), (RELU, "a", "b"), (ADD, "a b", "y"))
    assert blobs(given, "y") == [("x", "a"), ("a", "b"), ("a b", "y")]


def test_outputs_and_inputs_are_not_written_over() -> None:
    given = net((RELU, "x", "a"), (CONV, "a", "b"), (RELU, "b", "c"))
    assert blobs(given, "b", "c") == [("x", "a"), ("a", "b"), ("b", "c")]


def test_what_shares_its_bottoms_memory_is_not_written_over() -> None:
    given = net((CONV, "x", "a"), (FLAT, "a", "f"), (RELU, "f", "r"), (FLAT, "a", "g"), (ADD, "r g", "y"))
    assert blobs(given, "y") == [("x", "a"), ("a", "f"), ("f", "r"), ("a", "g"), ("r g", "y")]
