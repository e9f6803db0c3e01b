"""Errors of rewrites, patterns and custom ops."""

from __future__ import annotations

from caffeforge.generator.catalog.entry import Entry


def _relu(rewrite: str) -> str:
    lines = "\n".join(f"      {line}" for line in rewrite.split("\n"))
    return f"ops:\n  Relu:\n    rewrite: |\n{lines}"


def _pattern(match: str, rewrite: str, more: str = "") -> str:
    lines = "\n".join(f"      {line}" for line in match.split("\n"))
    return f"patterns:\n  one:{more}\n    match: |\n{lines}\n    rewrite: {rewrite}"


SILU = "gate = Sigmoid(x)\ny = Mul(x, gate)"

ENTRIES = (
    Entry(
        "rewrite-syntax",
        "the text is no rewrite",
        "A rewrite is lines 'result = Op(value, field=expression)', written as in Python.",
        _relu("Y = Max(X, 0.0"),
        _relu("Y = Max(X, 0.0)"),
    ),
    Entry(
        "rewrite-form",
        "a line that applies no op",
        "On the left stand new names, or results of what is rewritten; on the right the application "
        "of one op.",
        _relu("Max(X, 0.0)"),
        _relu("Y = Max(X, 0.0)"),
    ),
    Entry(
        "rewrite-missing",
        "a result is never given",
        "A rewrite gives each result of the op, or each top of the layer.",
        _relu("Z = Max(X, 0.0)"),
        _relu("Y = Max(X, 0.0)"),
    ),
    Entry(
        "rewrite-unused",
        "a value that nothing reads",
        "A line whose result no other line reads does nothing; most often a name is misspelt below it.",
        _relu("a = Neg(X)\nY = Max(X, 0.0)"),
        _relu("a = Neg(X)\nY = Neg(Min(a, 0.0))"),
    ),
    Entry(
        "rewrite-twice",
        "a name is given twice",
        "Names stand for one value each, so that a reader need not ask which.",
        _relu("a = Neg(X)\na = Min(a, 0.0)\nY = Neg(a)"),
        _relu("a = Neg(X)\nb = Min(a, 0.0)\nY = Neg(b)"),
    ),
    Entry(
        "rewrite-name",
        "a name that stands for something else",
        "Inputs, fields and values of let: keep their meaning in all of the rule.",
        _relu("X = Neg(X)\nY = Neg(Min(X, 0.0))"),
        _relu("a = Neg(X)\nY = Neg(Min(a, 0.0))"),
    ),
    Entry(
        "rewrite-order",
        "a result is read before it is given",
        "What is rewritten would be computed from itself. Its sizes (Y.shape) can be read at any time.",
        _relu("Y = Max(Y, 0.0)"),
        _relu("Y = Max(X, 0.0)"),
    ),
    Entry(
        "unknown-attribute",
        "the op has no such attribute",
        "Keyword arguments are attributes, and inputs that are fields of the op where they are constant.",
        _relu("Y = LeakyRelu(X, slope=0.0)"),
        _relu("Y = LeakyRelu(X, alpha=0.0)"),
    ),
    Entry(
        "missing-attribute",
        "the op needs an attribute",
        "ONNX gives it no default.",
        _relu("Y = Concat(X)"),
        _relu("Y = Concat(X, axis=0)"),
    ),
    Entry(
        "operand-count",
        "the op takes another number of values",
        "Positional arguments are tensors, in ONNX's order; None stands for one that is absent.",
        _relu("Y = Add(X)"),
        _relu("Y = Add(X, 0.0)"),
    ),
    Entry(
        "result-count",
        "the op does not yield as many values",
        "As many names may stand on the left as the op has outputs.",
        _relu("a, b = Neg(X)\nY = Max(a, b)"),
        _relu("a, b = Split(X, num_outputs=2)\nY = Max(a, b)"),
    ),
    Entry(
        "pattern-name",
        "a pattern's name is no name",
        "It is words joined by '-'.",
        "patterns:\n  swish!: {match: 'y = Elu(x, alpha=1.0)', rewrite: y = Relu(x)}",
        "patterns:\n  a-swish: {match: 'y = Elu(x, alpha=1.0)', rewrite: y = Relu(x)}",
    ),
    Entry(
        "pattern-keys",
        "a pattern lacks match: or rewrite:",
        "match: says which nodes are meant, rewrite: what stands for them.",
        "patterns:\n  one: {rewrite: y = Relu(x)}",
        "patterns:\n  one: {match: 'y = Elu(x, alpha=1.0)', rewrite: y = Relu(x)}",
    ),
    Entry(
        "pattern-syntax",
        "the text is no pattern",
        "A pattern is lines 'result = Op(value, field=value)', written as in Python.",
        _pattern("y = Elu(x", "y = Relu(x)"),
        _pattern("y = Elu(x, alpha=1.0)", "y = Relu(x)"),
    ),
    Entry(
        "pattern-form",
        "a line of a pattern that can match nothing",
        "Each line names the results of one op, which a later line reads, or which are what is "
        "replaced. Operands are names, numbers, None, other ops, or *name for all that are left.",
        _pattern("gate = Sigmoid(x)\ny = Mul(x, x)", "y = Relu(x)"),
        _pattern(SILU, "y = Swish(x, alpha=1.0)"),
    ),
    Entry(
        "pattern-inner",
        "the rewrite reads what it replaces",
        "The nodes that a pattern matches are gone when the rewrite is built, and with them all "
        "values but those that come from outside.",
        _pattern(SILU, "y = Mul(gate, x)"),
        _pattern(SILU, "y = Swish(x, alpha=1.0)"),
    ),
    Entry(
        "pattern-unused",
        "a captured field that nothing reads",
        "A name in the place of a field's value matches any value; if it is not read, the rewrite "
        "ignores it.",
        _pattern("y = Elu(x, alpha=a)", "y = Relu(x)"),
        _pattern("y = Elu(x, alpha=a)", "y = LeakyRelu(x, alpha=a)"),
    ),
    Entry(
        "pattern-operand",
        "optional: and constant: name operands",
        "They list names of operands that come from outside the pattern.",
        _pattern(SILU, "y = Swish(x, alpha=1.0)", "\n    constant: [z]"),
        _pattern(SILU, "y = Swish(x, alpha=1.0)", "\n    constant: [x]"),
    ),
    Entry(
        "custom-name",
        "a custom op has no domain",
        "Its name is dotted, so that it never is one of ONNX's.",
        "custom:\n  Focus: {inputs: [X]}",
        "custom:\n  vendorx.Focus: {inputs: [X]}",
    ),
    Entry(
        "custom-attribute",
        "an attribute's name cannot be used",
        "It becomes a field of the op's class, which has some names of its own.",
        "custom:\n  vendorx.Focus: {inputs: [X], attributes: {inputs: int}}",
        "custom:\n  vendorx.Focus: {inputs: [X], attributes: {block: int}}",
    ),
    Entry(
        "custom-default",
        "a default is not of the attribute's type",
        "An attribute is written 'int', which must be given, or 'int = 2'.",
        "custom:\n  vendorx.Focus: {inputs: [X], attributes: {block: int = two}}",
        "custom:\n  vendorx.Focus: {inputs: [X], attributes: {block: int = 2}}",
    ),
    Entry(
        "custom-input",
        "an input or output cannot be named so",
        "A tensor is written X, B? if it may be absent, and xs* for all that are left, which comes last.",
        "custom:\n  vendorx.Focus: {inputs: [xs*, X], shape: '[1]'}",
        "custom:\n  vendorx.Focus: {inputs: [X, xs*]}",
    ),
    Entry(
        "custom-output",
        "a custom op yields nothing",
        "outputs: lists at least one name; without it there is one, Y.",
        "custom:\n  vendorx.Focus: {inputs: [X], outputs: []}",
        "custom:\n  vendorx.Focus: {inputs: [X]}",
    ),
    Entry(
        "custom-shape",
        "the size of a result is not given",
        "Without shape: the first result is as large as the first input, which must be one that is "
        "always there.",
        "custom:\n  vendorx.Focus: {inputs: [xs*]}",
        "custom:\n  vendorx.Focus: {inputs: [xs*], shape: 'xs[0].shape[:]'}",
    ),
    Entry(
        "custom-torch",
        "torch: names no op of PyTorch",
        "It is the name given to torch.library, with its namespace.",
        "custom:\n  vendorx.Focus: {inputs: [X], torch: focus}",
        "custom:\n  vendorx.Focus: {inputs: [X], torch: vendorx::focus}",
    ),
)
