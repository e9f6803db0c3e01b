"""``caffe.MatrixInverse``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from caffeforge.generated.hub import caffe_ops
from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import GraphError
from caffeforge.runtime.reference import reference


@reference(caffe_ops.MatrixInverse)
def matrix_inverse(op: caffe_ops.MatrixInverse, operands: Sequence[NDArray | None]) -> Sequence[NDArray]:
    """Return the inverses, of the operand's shape and dtype.

    Raises:
        GraphError: a matrix has none.
    """
    (matrices,) = operands
    assert matrices is not None
    try:
        return [np.linalg.inv(matrices)]
    except np.linalg.LinAlgError as error:
        raise GraphError(f"a matrix has no inverse: {error}", where="caffe.MatrixInverse") from error
