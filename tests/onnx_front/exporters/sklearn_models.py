"""Models of scikit-learn, written by skl2onnx; it needs scikit-learn and skl2onnx."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tests.onnx_front.exporters.fixture import write

skl2onnx: Any = import_module("skl2onnx")
types: Any = import_module("skl2onnx.common.data_types")
pipeline: Any = import_module("sklearn.pipeline")


def _of(name: str, **options: Any) -> Any:
    """Return an estimator by its module and class, as ``linear_model.Ridge``."""
    module, _, cls = name.rpartition(".")
    return getattr(import_module(f"sklearn.{module}"), cls)(**options)


def estimators() -> dict[str, Any]:
    """Return what is trained; each pipeline ends in tensors of numbers."""
    scaler = "preprocessing.StandardScaler"
    return {
        "linear": _of("linear_model.LinearRegression"),
        "logistic": _of("linear_model.LogisticRegression"),
        "network": _of("neural_network.MLPClassifier", hidden_layer_sizes=(8,), max_iter=50, random_state=0),
        "network_tanh": _of(
            "neural_network.MLPRegressor",
            hidden_layer_sizes=(6, 4),
            activation="tanh",
            max_iter=50,
            random_state=0,
        ),
        "scaled": pipeline.make_pipeline(_of(scaler), _of("decomposition.PCA", n_components=3)),
        "means": _of("cluster.KMeans", n_clusters=3, n_init=1, random_state=0),
        "tree": _of("tree.DecisionTreeClassifier", max_depth=3, random_state=0),
    }


def main() -> None:
    """Train each on points around three centres, and write it."""
    generator = np.random.default_rng(0)
    classes = generator.integers(0, 3, 60)
    points = (generator.standard_normal((60, 4)) + classes[:, None]).astype(np.float32)
    x = points[:5]
    for name, estimator in estimators().items():
        estimator.fit(points, classes)
        classifies = hasattr(estimator, "predict_proba")
        options = {"zipmap": False} if classifies else None
        signature = [("x", types.FloatTensorType([None, 4]))]
        model = skl2onnx.convert_sklearn(estimator, initial_types=signature, options=options, target_opset=17)
        if classifies:
            outputs = [estimator.predict(x), estimator.predict_proba(x)]
        elif hasattr(estimator, "predict"):
            outputs = [estimator.predict(x)]
            outputs += [estimator.transform(x)] if hasattr(estimator, "transform") else []
        else:
            outputs = [estimator.transform(x)]
        wanted = [value.type.tensor_type.shape for value in model.graph.output]
        outputs = [o[:, None] if len(w.dim) > o.ndim else o for o, w in zip(outputs, wanted, strict=True)]
        write("skl2onnx", name, model.SerializeToString(), [x], outputs)


if __name__ == "__main__":
    main()
