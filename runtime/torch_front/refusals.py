"""Why operators without a place in the hub have none: the reasons that errors and the docs give."""

from __future__ import annotations

import re
from typing import Final

COMPLEX: Final = "the hub has no complex numbers, and this is not said of their parts"
SPECTRAL: Final = "no layer computes this Fourier transform: compute it before the model"
RANDOM: Final = "a net computes the same for the same input: pass random numbers as an input"
TRAINING: Final = "it belongs to training"
SIZED_BY_VALUES: Final = "the size of its result depends on the input's elements: cut the model before it"
SPARSE: Final = "the hub has dense tensors only"
ROUNDED: Final = (
    "it rounds as a quantized model does, and no Caffe layer rounds: export the float model, "
    "as after model.apply(torch.ao.quantization.disable_fake_quant)"
)
QUANTIZED: Final = "the hub has no quantized tensors: export the float model"
READS_A_NUMBER: Final = "it takes a number out of a tensor, on which the program would depend"
MEMORY: Final = "it looks at memory, not at elements"
DECOMPOSITION: Final = "no net computes matrix decompositions: compute it before the model"
PAIRS: Final = "no layer yields one number a pair of rows: use torch.cdist"
PACKED: Final = "packed sequences have sizes that depend on the input: pad them"
SPECIAL: Final = "no layer computes this special function"

# Patterns of operator names, without namespace and overload, and why none of them is lowered.
REASONS: Final[tuple[tuple[str, str], ...]] = (
    (r"_?fft_\w+|stft|istft", SPECTRAL),
    (r"(view_as_|is_)?(real|complex|imag)|view_as_real|view_as_complex|polar|angle|conj\w*", COMPLEX),
    (r"rand\w*|normal\w*|bernoulli\w*|multinomial|poisson|exponential|geometric|cauchy|uniform", RANDOM),
    (r"native_dropout|rrelu_with_noise\w*|fractional_max_pool\w*", RANDOM),
    (r"\w*_backward\w*|_amp_\w+|_fused_\w+|\w+_loss\w*", TRAINING),
    (r"_native_batch_norm_legit\.default|_batch_norm_with_update\w*", TRAINING),
    (r"_?pdist\w*", PAIRS),
    (r"nonzero\w*|unique\w*|_unique\w*|masked_select|bincount|histc|argwhere", SIZED_BY_VALUES),
    (r"_?sparse\w*|to_sparse\w*|\w+_csr|coalesce|_embedding_bag\w*", SPARSE),
    (r"_?fake_quantize\w*", ROUNDED),
    (r"\w*quantize\w*|q_scale|q_zero_point|int_repr", QUANTIZED),
    (r"_local_scalar_dense|item|equal", READS_A_NUMBER),
    (r"sym_\w+|set_|resize_|is_same_size|stride|storage_offset|empty_strided", MEMORY),
    (
        r"linalg_(?!norm|vector_norm|matrix_norm|matmul|cross|vecdot|diagonal|multi_dot|matrix_power)\w+",
        DECOMPOSITION,
    ),
    (
        r"_linalg_\w+|cholesky\w*|svd|qr|lu_\w+|geqrf|ormqr|triangular_solve|logdet|slogdet|pinverse",
        DECOMPOSITION,
    ),
    (r"digamma|polygamma|mvlgamma|igammac?|i0", SPECIAL),
    (r"special_(i[01]e?|\w+gamma|\w*bessel\w*|\w+polynomial\w*|zeta|erfcx|airy_ai)", SPECIAL),
    (r"nextafter|frexp|hash_tensor", "it looks at the bits of numbers"),
    (r"mode|histogram\w*|_histogramdd\w*|segment_reduce", "no layer counts equal elements or runs of them"),
    (r"embedding_renorm", "it writes into the weights while the model runs"),
    (r"(lstm|gru|rnn_tanh|rnn_relu)\.data|_pad_packed_sequence|_pack_padded_sequence", PACKED),
)


def reason(op: str) -> str:
    """Return why an operator, named as ``aten.fft_fft.default``, is not lowered, or "" if none is known."""
    namespace, _, rest = op.partition(".")
    if namespace != "aten":
        return f"declare it under custom: of the mapping, with torch: {namespace}::{rest.partition('.')[0]}"
    name = rest.partition(".")[0]
    return next(
        (why for pattern, why in REASONS if re.fullmatch(pattern, name) or re.fullmatch(pattern, rest)), ""
    )
