"""Errors of reading files: what is no YAML, JSON or proto, and names that Python cannot hold."""

from __future__ import annotations

from caffeforge.generator.catalog.entry import Entry

ENTRIES = (
    Entry(
        "no-input",
        "a file is missing or cannot be read",
        "A schema is a folder with caffe.proto (or caffe_pb2.py, caffe.pb), mapping.yaml or both, or "
        "one of these files. A "
        "mapping without a caffe.proto beside it needs extends:, which gives it the schema of another "
        "backend.",
        "gen-backend schemas/vendory",
        "gen-backend schemas/vendorx",
        "command",
    ),
    Entry(
        "output",
        "the package cannot be written",
        "A folder is missing its permissions, the disk is full, or there is a file of the same name "
        "that gen-backend did not write. Such a file is left as it is; give another folder by --out.",
        "gen-backend schemas/vendorx --out README.md",
        "gen-backend schemas/vendorx --out generated",
        "command",
    ),
    Entry(
        "yaml-syntax",
        "the file is no YAML",
        "The place is where the parser gave up, which may be behind the mistake. Often a brace or bracket is "
        "not closed, or an expression holds a colon or '#': such a text needs quotes, or '|' and lines of "
        "its own.",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: 0.0}",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: 0.0}}",
    ),
    Entry(
        "yaml-top",
        "the file does not hold keys and values",
        "A mapping begins with 'backend:' and has a key for each section.",
        "- backend: vendorx",
        "backend: vendorx\nextends: bvlc",
        whole=True,
    ),
    Entry(
        "yaml-duplicate",
        "a key is given twice",
        "YAML's readers would keep one of the two values in silence.",
        "ops:\n  Relu: {layer: ReLU}\n  Relu: {layer: Silence}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "yaml-key",
        "a key is a list or a mapping",
        "Keys are words: names of sections, ops, layer types and fields.",
        "ops:\n  [Relu, Elu]: {layer: ReLU}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "yaml-alias",
        "an anchor or alias",
        "A rule is read where it stands, so that its text must be there. What several rules share can "
        "be named by let: in each, or be inherited by extends:.",
        "ops:\n  Relu: &same {layer: ReLU}\n  Selu: *same",
        "ops:\n  Relu: {layer: ReLU}\n  Selu: {layer: ReLU}",
    ),
    Entry(
        "yaml-tag",
        "a tag",
        "Values are texts; what they mean follows from where they stand, not from tags.",
        "ops:\n  Relu: {layer: !!str ReLU}",
        "ops:\n  Relu: {layer: ReLU}",
    ),
    Entry(
        "yaml-document",
        "a second document",
        "A file is one document. A line '---' or '...' begins another, which nothing would read.",
        "ops: {}\n---\nlayers: {}",
        "ops: {}\nlayers: {}",
    ),
    Entry(
        "yaml-depth",
        "values are nested without end",
        "No part of a mapping is nested more than a few levels deep.",
        f"types: {'[' * 50}{']' * 50}",
        "types: {Dropout: []}",
    ),
    Entry(
        "yaml-character",
        "a byte that is no UTF-8, or a control character",
        "Mappings are UTF-8. An editor that saves Latin-1 or GBK must be told so; caffe.proto may "
        "hold any bytes in its comments.",
        "ops: {}  # \x07",
        "ops: {}  # a bell",
    ),
    Entry(
        "yaml-quotes",
        "a text that needs quotes",
        "Within { } and [ ] YAML takes commas and brackets for its own, so that a text with one needs "
        "quotes. On a line of its own, with no braces and brackets around it, it needs none.",
        "ops:\n  Relu: {layer: ReLU, fields: {negative_slope: max(0, 0.0)}}",
        'ops:\n  Relu: {layer: ReLU, fields: {negative_slope: "max(0, 0.0)"}}',
    ),
    Entry(
        "yaml-shape",
        "a value of another form is due",
        "A list stands where a mapping is due, nothing where an expression is, and so on. An "
        "expression with brackets is a list for YAML unless it is in quotes.",
        "ops:\n  Relu: {layer: ReLU, bottoms: [[X]]}",
        "ops:\n  Relu: {layer: ReLU, bottoms: [X]}",
    ),
    Entry(
        "proto",
        "protoc refuses the schema",
        "The sentence and the place are protoc's own; it counts a tab as up to eight columns. What a "
        "file imports is looked up in the folders that -I gives.",
        "message A {\n  optional int32 a = 1\n}",
        "message A {\n  optional int32 a = 1;\n}",
        "caffe.proto",
    ),
    Entry(
        "proto-form",
        "the schema holds what no Caffe has",
        "Groups, proto3 and editions are encoded in other ways than Caffe's messages, and a default "
        "must be UTF-8.",
        "message A {\n  optional group B = 1 {}\n}",
        "message B {}\nmessage A {\n  optional B b = 1;\n}",
        "caffe.proto",
    ),
    Entry(
        "proto-name",
        "a name that a Python class cannot have",
        "Names of messages and fields become names of classes and their attributes. Keywords are no "
        "problem (lambda becomes lambda_), but names that begin with two underscores are, and those "
        "of the base class.",
        "message A {\n  optional int32 __class__ = 1;\n}",
        "message A {\n  optional int32 class = 1;\n}",
        "caffe.proto",
    ),
    Entry(
        "proto-recursive",
        "a message holds itself",
        "No Caffe message does, and its class could not be written down before itself.",
        "message A {\n  optional A inner = 1;\n}",
        "message B {}\nmessage A {\n  optional B inner = 1;\n}",
        "caffe.proto",
    ),
    Entry(
        "name-clash",
        "two things would have one name",
        "Messages, enums and layer types are classes of one module, where nested names are joined by "
        "underscores; patterns and custom ops are functions and classes of another.",
        "message A {\n  message B {}\n}\nmessage A_B {}",
        "message A {\n  message B {}\n}\nmessage A_C {}",
        "caffe.proto",
    ),
    Entry(
        "fragment-clash",
        "a fragment contradicts the schema that it is laid over",
        "A proto without NetParameter that re-opens a message of the base's, as LayerParameter, is pasted "
        "into it. Its fields may stand there already, but not in another form, and a number that is taken "
        "is not free: give the vendor's whole caffe.proto, or the number that the vendor uses.",
        "message LayerParameter {\n  optional int32 focus = 131;\n}",
        "message LayerParameter {\n  optional int32 focus = 9000;\n}",
        "caffe.proto",
        whole=True,
    ),
    Entry(
        "schema-skeleton",
        "the schema lacks what every net needs",
        "A whole caffe.proto has NetParameter with its layers, LayerParameter, BlobProto and "
        "BlobShape. A fragment that is to be pasted into Caffe's own re-opens one of its messages, mostly "
        "LayerParameter, and needs a mapping that extends a backend, or none.",
        'syntax = "proto2";\nmessage FocusParameter {}',
        'syntax = "proto2";\nmessage BlobShape { repeated int64 dim = 1; }\nmessage BlobProto {\n'
        "  optional BlobShape shape = 7;\n  repeated float data = 5;\n}\nmessage LayerParameter {\n"
        "  optional string name = 1;\n  optional string type = 2;\n  repeated string bottom = 3;\n"
        "  repeated string top = 4;\n  repeated BlobProto blobs = 7;\n}\nmessage NetParameter {\n"
        "  optional string name = 1;\n  repeated LayerParameter layer = 100;\n}",
        "caffe.proto",
        whole=True,
    ),
    Entry(
        "opset-syntax",
        "opset.json is no JSON",
        "The file is written by 'python -m caffeforge.generator.extract_opset' and not edited by hand.",
        '{"opset": 24 "ops": {}}',
        '{"opset": 24, "ops": {}}',
        "opset.json",
        whole=True,
    ),
    Entry(
        "opset-form",
        "opset.json misses keys, or has values of another form",
        "The file is written by 'python -m caffeforge.generator.extract_opset' and not edited by hand.",
        '{"opset": "24"}',
        '{"opset": 24, "ops": {}}',
        "opset.json",
        whole=True,
    ),
    Entry(
        "hub-entry",
        "an entry of ops.yaml is of another form",
        "The entry of an op holds drop: and require:, lists of attributes, and default: and static:, "
        "mappings.",
        "Conv: {drop: auto_pad}",
        "Conv: {drop: [auto_pad]}",
        "ops.yaml",
        whole=True,
    ),
    Entry(
        "hub-static",
        "an input cannot be a field",
        "A static input becomes a field of the op where it is constant, so that it must be one input, "
        "hold numbers of the kind that is named, and have a name that no attribute has.",
        "Concat: {static: {inputs: ints}}",
        "Reshape: {static: {shape: ints}}",
        "ops.yaml",
        whole=True,
    ),
    Entry(
        "unknown-input",
        "the op has no such input",
        "static: names inputs as ONNX does.",
        "Reshape: {static: {shapes: ints}}",
        "Reshape: {static: {shape: ints}}",
        "ops.yaml",
        whole=True,
    ),
)
