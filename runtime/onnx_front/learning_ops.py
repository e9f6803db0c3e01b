"""Ops of ``ai.onnx.ml`` that are sums and products: what scikit-learn's models hold beside trees.

The others stay as they are. onnxruntime runs them; `result_type` tells the types that ONNX does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, helper

from caffeforge.generated import hub
from caffeforge.runtime.array import Dense
from caffeforge.runtime.graph import Value, constant
from caffeforge.runtime.onnx_front.call import Unconvertible
from caffeforge.runtime.onnx_front.kept import plain_attributes
from caffeforge.runtime.op import Op

if TYPE_CHECKING:
    from caffeforge.runtime.onnx_front.importer import Importer

DOMAIN: Final = "ai.onnx.ml"


class Learned:
    """One node on its way into the hub."""

    def __init__(self, importer: Importer, node: NodeProto, inputs: Sequence[Value | None]) -> None:
        self.importer = importer
        self.node = node
        self.given = {attribute.name: value for attribute, value in plain_attributes(node)}
        self.inputs = [value for value in inputs if value is not None]

    def results(self) -> Sequence[Value]:
        """Return the node's results.

        Raises:
            Unconvertible: it is none of these ops, or of a form that they do not say.
        """
        conversion = _CONVERSIONS.get(self.node.op_type)
        if conversion is None or not self.inputs:
            raise Unconvertible("it is an op of a custom domain")
        return conversion(self)

    def one(self, op: Op, *operands: Value | None) -> Value:
        """Add a node and return its one result."""
        return self.importer.apply(op, operands, 1)[0]

    def array(self, elements: Any, dtype: type = np.float32) -> Value:
        """Return a constant operand."""
        return constant("", Dense(np.array(elements, dtype)))

    def numbers(self) -> Value:
        """Return the first operand as float32."""
        x = self.inputs[0]
        return x if x.dtype == "float32" else self.one(hub.Cast(to=TensorProto.FLOAT), x)


def _scaler(call: Learned) -> Sequence[Value]:
    x = call.numbers()
    if "offset" in call.given:
        x = call.one(hub.Sub(), x, call.array(call.given["offset"]))
    return [call.one(hub.Mul(), x, call.array(call.given["scale"])) if "scale" in call.given else x]


def _regressor(call: Learned) -> Sequence[Value]:
    return [_transformed(call, _scores(call, call.given.get("targets", 1)))]


def _classifier(call: Learned) -> Sequence[Value]:
    labels = call.given.get("classlabels_ints") or call.given.get("classlabels_strings") or ()
    if len(labels) < 2 or len(call.given.get("intercepts", labels)) != len(labels):
        raise Unconvertible("it has not one score for each of two or more labels")
    scores = _scores(call, len(labels))
    place = call.one(hub.ArgMax(axis=1, keepdims=0), scores)
    kind = np.int64 if "classlabels_ints" in call.given else np.object_
    label = call.one(hub.Gather(axis=0), call.array(labels, kind), place)
    return [label, _transformed(call, scores)]


def _scores(call: Learned, count: int) -> Value:
    """Return one sum of products of the operand's columns for each target or label."""
    rows = np.array(call.given["coefficients"], np.float32).reshape(count, -1)
    found = call.one(hub.MatMul(), call.numbers(), call.array(rows.T))
    intercepts = call.given.get("intercepts")
    return call.one(hub.Add(), found, call.array(intercepts)) if intercepts else found


def _transformed(call: Learned, scores: Value) -> Value:
    transform = call.given.get("post_transform", "NONE")
    ops: dict[str, Op] = {"SOFTMAX": hub.Softmax(axis=-1), "LOGISTIC": hub.Sigmoid()}
    if transform == "NONE":
        return scores
    if transform not in ops:
        raise Unconvertible(f"post_transform={transform} has no place in the hub")
    return call.one(ops[transform], scores)


def _normalizer(call: Learned) -> Sequence[Value]:
    orders = {"L1": 1, "L2": 2}
    norm = call.given.get("norm", "MAX")
    if norm not in orders:
        raise Unconvertible(f"norm={norm} has no place in the hub")
    return [call.one(hub.LpNormalization(axis=-1, p=orders[norm]), call.numbers())]


def _binarizer(call: Learned) -> Sequence[Value]:
    x = call.inputs[0]
    over = call.one(hub.Greater(), call.numbers(), call.array(call.given.get("threshold", 0.0)))
    return [call.one(hub.Cast(to=helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))), over)]


def _extractor(call: Learned) -> Sequence[Value]:
    """Columns by their places; a vector counts as one row."""
    x, places = call.inputs
    if places.rank != 1:
        places = call.one(hub.Reshape(shape=(-1,)), places)
    if x.rank > 1 and x.dims[0] != 1:
        return [call.one(hub.Gather(axis=x.rank - 1), x, places)]
    row = x if x.rank == 1 else call.one(hub.Squeeze(axes=(0,)), x)
    return [call.one(hub.Unsqueeze(axes=(0,)), call.one(hub.Gather(axis=row.rank - 1), row, places))]


_CONVERSIONS: Final[Mapping[str, Callable[[Learned], Sequence[Value]]]] = {
    "ArrayFeatureExtractor": _extractor,
    "Binarizer": _binarizer,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
}

_CLASSIFIERS: Final = frozenset({"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"})
_ROWS: Final = frozenset({"LinearRegressor", "Normalizer", "SVMRegressor", "TreeEnsembleRegressor"})


def result_type(node: NodeProto, index: int) -> TypeProto | None:
    """Return the type of a result where ONNX tells none: a label or a row of scores for each row."""
    if node.op_type in _CLASSIFIERS and index == 0:
        texts = any(a.name == "classlabels_strings" and a.strings for a in node.attribute)
        return helper.make_tensor_type_proto(TensorProto.STRING if texts else TensorProto.INT64, [None])
    if node.op_type in _CLASSIFIERS or node.op_type in _ROWS:
        return helper.make_tensor_type_proto(TensorProto.FLOAT, [None, None])
    return None
