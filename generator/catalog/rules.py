"""Errors of a mapping's sections and rules: names, verbs, inheritance, and what would have no effect."""

from __future__ import annotations

from caffeforge.generator.catalog.entry import Entry

ENTRIES = (
    Entry(
        "backend-name",
        "the backend has no usable name",
        "'backend:' names the Python package that is written to generated/, so that it must be an "
        "identifier, no keyword, and no other schema's name: that package would be overwritten.",
        "backend: vendor-x\nextends: bvlc",
        "backend: vendorx\nextends: bvlc",
        whole=True,
    ),
    Entry(
        "unknown-base",
        "extends: names no schema",
        "A base is a folder beside this one, or one that is shipped; it is named, not given as a path.",
        "backend: vendorx\nextends: ../bvlc",
        "backend: vendorx\nextends: bvlc",
        whole=True,
    ),
    Entry(
        "extends-cycle",
        "extends: leads back to the same mapping",
        "A mapping can extend another one only if that one does not, in the end, extend it.",
        "backend: vendorx\nextends: looped",
        "backend: vendorx\nextends: bvlc",
        whole=True,
    ),
    Entry(
        "unknown-meaning",
        "use: names no known meaning of a layer",
        "The meanings are the entries of schemas/known_layers.yaml. A layer that is not among them gets "
        "an entry in types: and rules of its own.",
        "use: {Axpy: axpi}",
        "use: {Axpy: axpy}",
    ),
    Entry(
        "use-fit",
        "a layer type cannot have the meaning that use: gives it",
        "The parameter field of the meaning is missing in the schema, or its message has other fields; the "
        "meaning is that of another layer type; or types: has the type already.",
        "use: {Reorg: reorg.darknet}",
        "use: {Axpy: axpy}",
    ),
    Entry(
        "unknown-key",
        "a key that means nothing here",
        "A key that is misspelt would be ignored in silence by a lenient reader.",
        "ops:\n  Relu: {layer: ReLU, feilds: {negative_slope: 0.0}}",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: 0.0}}",
    ),
    Entry(
        "unknown-op",
        "the hub has no such op",
        "Ops have ONNX's names; those of the backend's own domain are dotted and declared under custom:.",
        "ops:\n  ReLU: {layer: ReLU}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "unknown-layer",
        "the dialect has no such layer type",
        "A proto does not name layer types: types: lists them, with the field that holds their parameters.",
        "ops:\n  Relu: {layer: Relu}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "unknown-field",
        "the message has no such field",
        "Fields have the names of caffe.proto.",
        "ops:\n  Relu: {layer: ReLU, fields: {slope: 0.0}}",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: 0.0}}",
    ),
    Entry(
        "unread-field",
        "a field or blob is written, and not read",
        "A net with a field that the rule for its layer does not know is refused when it is read back, and "
        "weights that nobody looks at are lost. The rule under layers: reads what the rules under ops: "
        "write, or lists it in ignore: (weights by the word blobs).",
        "types: {Leak: relu_param}\nops:\n  Relu: {layer: Leak, fields: {negative_slope: 0.0}}\n"
        "layers:\n  Leak: {rewrite: 'tops[0] = Relu(bottom)'}",
        "types: {Leak: relu_param}\nops:\n  Relu: {layer: Leak, fields: {negative_slope: 0.0}}\n"
        "layers:\n  Leak: {ignore: [negative_slope], rewrite: 'tops[0] = Relu(bottom)'}",
    ),
    Entry(
        "unknown-enum",
        "the enum has no such value",
        "Enum values have the names of caffe.proto; they are written with or without quotes.",
        "ops:\n  GlobalMaxPool: {layer: Pooling, fields: {pool: MAXIMUM}}",
        "ops:\n  GlobalMaxPool: {layer: Pooling, fields: {pool: MAX}}",
    ),
    Entry(
        "unknown-hook",
        "there is no such function",
        "hook: names a function of runtime/hooks/<backend>.py.",
        "ops:\n  Relu: {hook: write_relu}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "unknown-kind",
        "there is no such type",
        "An attribute is int, ints, float, floats, bool, string or strings; a static input one of the "
        "first five.",
        "custom:\n  vendorx.Focus: {inputs: [X], attributes: {block: integer}}",
        "custom:\n  vendorx.Focus: {inputs: [X], attributes: {block: int}}",
    ),
    Entry(
        "types-field",
        "the field holds no parameters",
        "types: names the fields of LayerParameter that are messages with the parameters of a layer type.",
        "types: {Dropout: name}",
        "types: {Dropout: []}",
    ),
    Entry(
        "layer-name",
        "the layer type's name is no identifier",
        "Each layer type becomes a class of that name.",
        "types: {Drop-Out: []}",
        "types: {Dropout: []}",
    ),
    Entry(
        "twice",
        "one thing is given twice",
        "One of the two would have no effect, or both would stand for different things under one name.",
        "types: {Act: [relu_param, relu_param]}",
        "types: {Act: relu_param}",
    ),
    Entry(
        "rule-verb",
        "a rule must say one thing",
        "An op becomes a layer:, layers (emit:), other ops (rewrite:) or what a function writes "
        "(hook:); a layer type is a rewrite:, hook: or inputs:. Several ways are alternatives of "
        "any_of:.",
        "ops:\n  Relu:\n    layer: ReLU\n    rewrite: Y = Max(X, 0.0)",
        "ops:\n  Relu:\n    any_of:\n      - {when: X.rank == 4, layer: ReLU}\n"
        "      - rewrite: Y = Max(X, 0.0)",
    ),
    Entry(
        "any-of",
        "any_of: is no list of alternatives",
        "Each alternative is one item, with when: if it is meant for some cases only.",
        "ops:\n  Relu: {any_of: {layer: ReLU}}",
        "ops:\n  Relu: {any_of: [{layer: ReLU}]}",
    ),
    Entry(
        "emit",
        "emit: is no list of layers that follow each other",
        "Each layer reads the top of the one before. The first cannot have when:, as nothing would be "
        "there if it is left out.",
        "ops:\n  Relu: {emit: {layer: ReLU}}",
        "ops:\n  Relu: {emit: [{layer: ReLU}, {layer: ReLU}]}",
    ),
    Entry(
        "layer",
        "layer: names no layer type",
        "It is one word, the type as nets write it.",
        "ops:\n  Relu: {layer: [ReLU]}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "bottoms",
        "a layer has no bottom",
        "Inputs that blobs: reads are no bottoms, and here it reads all of them. Their sizes "
        "(X.shape) can be read.",
        "ops:\n  Conv: {layer: Convolution, blobs: [X, W, B]}",
        "ops:\n  Conv: {layer: Convolution, blobs: [W, B]}",
    ),
    Entry(
        "kept",
        "the top that goes on is none of the layer's",
        "A layer has one top and loose: further ones; kept: is the place among all of the one that goes on.",
        "ops:\n  Relu: {emit: [{layer: ReLU, loose: 1, kept: 2}]}",
        "ops:\n  Relu: {emit: [{layer: ReLU, loose: 1, kept: 1}]}",
    ),
    Entry(
        "top-name",
        "a top's name is taken or no name",
        "top: names what a layer yields for the layers behind it; it must be new.",
        "ops:\n  Relu:\n    emit:\n      - {layer: ReLU, top: X}\n      - {layer: ReLU, bottoms: [X]}",
        "ops:\n  Relu:\n    emit:\n      - {layer: ReLU, top: first}\n"
        "      - {layer: ReLU, bottoms: [first]}",
    ),
    Entry(
        "field-value",
        "the field takes another kind of value",
        "A list stands for a field that is not repeated, or keys for one that is no message.",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: [0.0]}}",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: 0.0}}",
    ),
    Entry(
        "require",
        "a condition without its sentence",
        "A condition that does not hold is shown to the user by its sentence, so that each has one.",
        "ops:\n  Relu: {require: [{expr: X.rank == 4}], layer: ReLU}",
        "ops:\n  Relu: {require: [{expr: X.rank == 4, else: blobs have four axes}], layer: ReLU}",
    ),
    Entry(
        "constant-condition",
        "a condition that names nothing",
        "It holds always or never; most often a name was left out, or taken for a word in quotes.",
        "ops:\n  Relu: {when: 4 == 4, layer: ReLU}",
        "ops:\n  Relu: {when: X.rank == 4, layer: ReLU}",
    ),
    Entry(
        "no-effect",
        "something would change nothing",
        "It stands where nothing reads it, so that the rule does not do what it seems to say.",
        "ops:\n  Relu: {rewrite: 'Y = Max(X, 0.0)', fields: {negative_slope: 0.0}}",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: 0.0}}",
    ),
    Entry(
        "unreachable",
        "an alternative that is never reached",
        "Alternatives are tried in order. One without a condition is always taken, so that it stands last.",
        "ops:\n  Relu:\n    any_of:\n      - layer: ReLU\n      - {when: X.rank == 4, layer: Pooling}",
        "ops:\n  Relu:\n    any_of:\n      - {when: X.rank == 4, layer: Pooling}\n      - layer: ReLU",
    ),
    Entry(
        "unused-let",
        "a value that nothing reads",
        "let: and top: name values for later expressions. One that is not read is left over, or "
        "misspelt where it should be read.",
        "ops:\n  Relu: {let: {axes: X.rank}, layer: ReLU}",
        "ops:\n  Relu: {let: {axes: X.rank}, when: axes == 4, layer: ReLU}",
    ),
    Entry(
        "let-name",
        "a value's name is no name",
        "It must be usable in expressions: letters, digits and underscores, and no keyword of Python.",
        "ops:\n  Relu: {let: {in: X.rank}, layer: ReLU}",
        "ops:\n  Relu: {let: {axes: X.rank}, when: axes == 4, layer: ReLU}",
    ),
    Entry(
        "let-twice",
        "a value is given for all alternatives and again for one",
        "Which of the two an expression reads would depend on where it stands.",
        "ops:\n  Relu:\n    let: {n: X.rank}\n    any_of:\n      - {let: {n: 4}, when: n == 4, layer: ReLU}",
        "ops:\n  Relu:\n    any_of:\n      - {let: {n: X.rank}, when: n == 4, layer: ReLU}",
    ),
    Entry(
        "net",
        "net: input: is of another form",
        "It is the word 'fields', for nets with input: and input_shape:, or a layer with its fields.",
        "net: {input: Input}",
        "net: {input: {layer: Input, fields: {shape: [{dim: 'X.shape[:]'}]}}}",
    ),
    Entry(
        "amend-nothing",
        "nothing is inherited under this name",
        "amend:, prepend:, append: and null change what the base has; here it has nothing.",
        "ops:\n  Relu6: {amend: true, layer: ReLU}",
        "ops:\n  Relu: {amend: true, layer: Silence}",
    ),
    Entry(
        "amend-value",
        "amend: takes true",
        "amend: true merges an entry into the inherited one; without it the entry replaces it.",
        "ops:\n  Relu: {amend: always, layer: Silence}",
        "ops:\n  Relu: {amend: true, layer: Silence}",
    ),
    Entry(
        "amend-list",
        "prepend: and append: take lists",
        "Each item is one alternative, tried before or after the inherited ones.",
        "ops:\n  Relu: {prepend: {when: X.rank == 2, layer: ReLU}}",
        "ops:\n  Relu: {prepend: [{when: X.rank == 2, layer: ReLU}]}",
    ),
    Entry(
        "example",
        "an example cannot be read",
        "The example of an op is its application to types: Relu(float32[2, 3]); that of a layer has its "
        "parameters as well: Pooling(float32[1, 2, 7, 7], pool=MAX, kernel_size=3). That of a pattern "
        "gives a type, or the value of a field, for each free name.",
        "ops:\n  Relu: {layer: ReLU, example: 'float32[2, 3]'}",
        "ops:\n  Relu: {layer: ReLU, example: 'Relu(float32[2, 3])'}",
    ),
)
