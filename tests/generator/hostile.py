"""Texts that would do harm if they became code, and the places of the inputs where a text can stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tests.generator.inputs import BACKEND, SMALL

Files = Mapping[str, str]
Place = Callable[[str], Files]

CANARY = "canary-was-here"
RUN = f"__import__('pathlib').Path({CANARY!r}).touch()"
SCHEMA = (SMALL / "caffe.proto").read_text(encoding="utf-8")
TEXTS = (
    RUN,
    f'"""\n{RUN}\n"""',
    f"'''\n{RUN}\n'''",
    f'"\n{RUN}\n#',
    f"') or {RUN} or ('",
    f"\\\n{RUN}",
    f"x\r{RUN}",
    f"x\u2028{RUN}",
    "{{ 7 * 7 }}",
    "{% for x in y %}{{ x }}{% endfor %}",
    "{# comment #}",
    "%(name)s {0} {name!r} ${name} \\N{DASH} \\x41 \\",
    "# -*- coding: utf-7 -*-",
    "__class__",
    "__import__",
    "__builtins__",
    "_private",
    "lambda",
    "None",
    "async",
    "self",
    "object",
    "eval",
    "exec",
    "print",
    "set_",
    "hub",
    "lib",
    "op",
    "r",
    "Message",
    "Final",
    "annotations",
    "e\u0301",
    "\ufb01eld",
    "\uff45\uff56\uff41\uff4c",  # eval, in fullwidth letters
    "\u202e\u2066gnitrats",
    "\U0001d41e\U0001d42f\U0001d41a\U0001d425",
    "a.b",
    "../../up",
    "match",
    "case",
    "type",
    "_",
    "Refused",
    "or_default",
    "Literal",
    "bool",
    "float",
    "none",
    "inf",
    "null",
    "1e999",
    "0x10",
    "{%- raw -%}{{ '' }}{%- endraw -%}",
    "{% include 'package.py.j2' %}",
    "{{ ''.__class__.__mro__ }}",
    "X.__class__",
    "().__class__.__bases__",
    "(a := 1)",
    "*X",
    "**X",
    "f'{X}'",
    "lambda: 0",
    "(yield)",
    "await X",
    "X; import os",
    "a, b",
    "a: b",
    "a # b",
    "'",
    '"',
    '"""',
    "\\'",
    "\\\\",
    "a\tb",
    "a\r\nb",
    "\x1b[31m",
    "na\u00efve",
    "\u5909\u6570",
    "\u2102",
    "\u00aa",
    "",
    " ",
    "x" * 5000,
    "1" * 5000,
    "(" * 300,
    "-" * 3000 + "x",
    "not " * 900 + "x",
    "9" * 30 + "**" + "9" * 30,
)


def _mapping(template: str) -> Place:
    """Return what writes a mapping with a text in the place of ``@``, quoted as YAML quotes."""
    return lambda text: {"mapping.yaml": BACKEND + template.replace("@", json.dumps(text))}


def _plain(template: str) -> Place:
    """Return what writes a mapping with a text as it is in the place of ``@``."""
    return lambda text: {"mapping.yaml": BACKEND + template.replace("@", text)}


def _proto(template: str, quoted: Callable[[str], str] = str) -> Place:
    """Return what writes a schema with a text in the place of ``@``."""

    def files(text: str) -> Files:
        added = template.replace("@", quoted(text))
        return {"mapping.yaml": "backend: vendorx\n", "caffe.proto": f"{SCHEMA}\n{added}\n"}

    return files


def _filled(template: str, inner: str) -> Place:
    """Return what writes a mapping with `inner` in the place of ``@``, and a text in that of ``$`` in it."""
    return lambda text: _mapping(template)(inner.replace("$", text))


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _no_end(text: str) -> str:
    return text.replace("*/", "")


def _block(text: str) -> Files:
    lines = "\n".join(f"      {line}" for line in text.split("\n"))
    return _plain("ops:\n  Relu:\n    rewrite: |\n@")(lines)


def _backend(text: str) -> Files:
    return {"mapping.yaml": f"backend: {json.dumps(text)}\nextends: small\n"}


def _opset(text: str) -> Files:
    formal = {"name": text, "type": "T", "option": "Single"}
    op = {
        "since": 1,
        "inputs": [formal],
        "outputs": [{**formal, "name": "Y"}],
        "types": {"T": ["tensor(float)", text]},
        "attributes": {text: {"type": "STRING", "default": text}, "other": {"type": "INTS", "default": [1]}},
        "deprecated": False,
    }
    ops = {"Relu": op, text: {**op, "inputs": []}}
    return {"opset.json": json.dumps({"opset": 24, "ops": ops}), "ops.yaml": "", "rewrites.yaml": ""}


def _rewrites(text: str) -> Files:
    files = dict(_opset("X"))
    files["ops.yaml"] = f"Relu:\n  default: {{other: {json.dumps(text)}}}\n"
    quoted = json.dumps(text)
    files["rewrites.yaml"] = f"fusions:\n  {quoted}: {{match: 'Y = Relu(x)', rewrite: {quoted}}}\n"
    return files


PLACES: dict[str, Place] = {
    "note": _mapping("ops: {Relu: {layer: ReLU, note: @}}"),
    "approximate": _mapping("ops: {Relu: {layer: ReLU, approximate: @}}"),
    "witness": _mapping(
        "layers: {ReLU: {ignore: [negative_slope], witness: @, rewrite: 'tops[0] = Relu(bottom)'}}"
    ),
    "meaning": _mapping("use: {ReLU: @}"),
    "type of a meaning": _mapping("use: {@: axpy}"),
    "number of tops": _mapping("ops: {Relu: {emit: [{layer: ReLU, loose: @, kept: @}]}}"),
    "path": _mapping("layers: {Input: {inputs: '[s.dim for s in shape]', ignore: [@]}}"),
    "field of a message": _filled("layers: {Input: {inputs: @}}", "[s.$ for s in shape]"),
    "field of the parameters": _filled(
        "layers: {ReLU: {rewrite: @}}", "tops[0] = Elu(bottom, alpha=param.$)"
    ),
    "presence": _filled("layers: {ReLU: {when: @, rewrite: 'tops[0] = Relu(bottom)'}}", "has($)"),
    "piece": _filled("ops: {Split: {rewrite: @}}", "outputs[$] = Neg(input)\noutputs[1] = Neg(input)"),
    "pieces": _filled("ops: {Split: {rewrite: @}}", "outputs = [Neg($), Neg(input)]"),
    "field of the net's input": _mapping("net: {input: {layer: Input, fields: {@: X.rank}}}"),
    "value of the net's input": _mapping("net: {input: {layer: Input, fields: {shape: [{dim: @}]}}}"),
    "source": _mapping("constraints: {ReLU: [{expr: negative_slope == 0, else: no, source: @}]}"),
    "sentence of a layer": _mapping(
        "layers: {ReLU: {require: [{expr: negative_slope == 0, else: @}], rewrite: 'tops[0] = Relu(bottom)'}}"
    ),
    "optional operand": _mapping(
        "patterns: {a: {match: 'y = Elu(x, alpha=1.0)', rewrite: y = Relu(x), optional: [@], constant: [@]}}"
    ),
    "capture": _filled("patterns: {one: {match: @, rewrite: y = Relu(x)}}", "y = Elu(x, alpha=$)"),
    "two fields": _proto("message A {\n  optional int32 @ = 1;\n  optional int32 @_ = 2;\n}"),
    "layer type over a field": lambda text: {
        "mapping.yaml": f"backend: vendorx\nextends: small\ntypes: {{{json.dumps(text)}: relu_param}}\n"
        f"ops: {{Relu: {{layer: {json.dumps(text)}, fields: {{negative_slope: 0.0}}}}}}\n"
    },
    "flow": _plain("ops: {Relu: {layer: ReLU, fields: {negative_slope: max(0, [@][0])}}}"),
    "backend": _backend,
    "extends": lambda text: {"mapping.yaml": f"backend: vendorx\nextends: {json.dumps(text)}\n"},
    "layer type": _mapping("types: {@: relu_param}\nops: {Relu: {layer: @}}\nlayers: {@: {rewrite: ''}}"),
    "layer type without a rule": _mapping("types: {@: []}"),
    "parameter field": _mapping("types: {Act: @}"),
    "op": _mapping("ops: {@: {layer: ReLU}}"),
    "field": _mapping("ops: {Relu: {layer: ReLU, fields: {@: 1.0}}}"),
    "value": _mapping("ops: {Relu: {layer: ReLU, fields: {negative_slope: @}}}"),
    "plain value": _plain("ops: {Relu: {layer: ReLU, fields: {negative_slope: @}}}"),
    "enum value": _mapping("ops: {GlobalMaxPool: {layer: Pooling, fields: {pool: @}}}"),
    "let": _mapping("ops: {Elu: {let: {@: alpha}, when: @, layer: ReLU}}"),
    "let value": _mapping("ops: {Relu: {let: {x: @}, when: x == 1, layer: ReLU}}"),
    "word": _filled("ops: {Relu: {when: @, layer: ReLU}}", "X.name == '$'"),
    "condition": _mapping("ops: {Relu: {require: [{expr: @, else: no}], layer: ReLU}}"),
    "sentence": _mapping("ops: {Relu: {require: [{expr: X.rank == 4, else: @}], layer: ReLU}}"),
    "otherwise": _mapping("ops: {Relu: {when: X.rank == 4, layer: ReLU, otherwise: @}}"),
    "block": _block,
    "blob": _mapping("ops: {Relu: {layer: ReLU, blobs: [@]}}"),
    "bottom": _mapping("ops: {Relu: {layer: ReLU, bottoms: [@]}}"),
    "top": _mapping("ops: {Relu: {emit: [{layer: ReLU, top: @}, {layer: ReLU, bottoms: [@]}]}}"),
    "hook": _mapping("ops: {Relu: {hook: @}}"),
    "rewrite": _mapping("ops: {Relu: {rewrite: @}}"),
    "rewrite's name": _filled("ops: {Relu: {rewrite: @}}", "$ = Neg(X)\nY = Neg($)"),
    "rewrite's field": _filled("ops: {Relu: {rewrite: @}}", "Y = Elu(X, $=1.0)"),
    "loop": _filled("ops: {Relu: {rewrite: @}}", "Y = Sum(*[Neg($) for $ in [X]])"),
    "ignored field": _mapping("layers: {ReLU: {ignore: [@], rewrite: 'tops[0] = Relu(bottom)'}}"),
    "reading": _mapping("layers: {ReLU: {when: @, rewrite: 'tops[0] = Relu(bottom)'}}"),
    "inputs": _mapping("layers: {ReLU: {inputs: @}}"),
    "constraint": _mapping("constraints: {ReLU: [{expr: negative_slope == 0, else: @, source: @}]}"),
    "pattern": _mapping("patterns: {@: {match: 'y = Elu(x, alpha=1.0)', rewrite: y = Relu(x)}}"),
    "match": _mapping("patterns: {one: {match: @, rewrite: y = Relu(x)}}"),
    "match's name": _filled(
        "patterns: {one: {match: @, rewrite: y = Relu(x)}}", "$ = Neg(x)\ny = Elu($, alpha=1.0)"
    ),
    "match's field": _filled(
        "patterns: {one: {match: @, rewrite: y = Relu(x)}}", "y = Pad(x, ..., mode='$')"
    ),
    "custom op": _mapping("custom: {@: {inputs: [X]}}"),
    "custom domain": _filled("custom: {@: {inputs: [X]}}", "$.Focus"),
    "custom class": _filled("custom: {@: {inputs: [X]}}", "vendorx.$"),
    "custom input": _mapping("custom: {vendorx.A: {inputs: [@], shape: '[1]', reference: Y = Relu(X)}}"),
    "custom output": _mapping("custom: {vendorx.A: {inputs: [X], outputs: [@]}}"),
    "custom attribute": _mapping("custom: {vendorx.A: {inputs: [X], attributes: {@: int}}}"),
    "custom type": _mapping("custom: {vendorx.A: {inputs: [X], attributes: {a: @}}}"),
    "custom default": _filled("custom: {vendorx.A: {inputs: [X], attributes: {a: @}}}", "string = $"),
    "custom default list": _filled(
        "custom: {vendorx.A: {inputs: [X], attributes: {a: @}}}", "strings = ['$', '$']"
    ),
    "custom shape": _mapping("custom: {vendorx.A: {inputs: [X], shape: @}}"),
    "custom torch": _mapping("custom: {vendorx.A: {inputs: [X], torch: @}}"),
    "custom reference": _mapping("custom: {vendorx.A: {inputs: [X], reference: @}}"),
    "example": _mapping("ops: {Relu: {layer: ReLU, example: @}}"),
    "example's type": _filled("ops: {Relu: {layer: ReLU, example: @}}", "Relu($)"),
    "pattern's example": _mapping(
        "patterns: {one: {match: 'y = Elu(x, alpha=a)', rewrite: 'y = Elu(x, alpha=a)', "
        "example: {x: 'float32[2]', a: @}}}"
    ),
    "key": _mapping("@: {}"),
    "net": _mapping("net: {loose_tops: @, in_place: [@], input: {layer: @}}"),
    "comment of a message": _proto("// @\nmessage A {}"),
    "comment of a field": _proto("message A {\n  // @\n  optional int32 a = 1; // @\n}", _one_line),
    "block comment": _proto("/* @ */\nmessage A {\n  /* @ */\n  optional int32 a = 1;\n}", _no_end),
    "comment of an enum": _proto("/* @ */\nenum E {\n  ONE = 1;\n}", _no_end),
    "message": _proto("message @ {\n  optional int32 a = 1;\n}"),
    "nested message": _proto("message A {\n  message @ {}\n  optional @ a = 1;\n}"),
    "enum": _proto("enum @ {\n  ONE = 1;\n}\nmessage A {\n  optional @ a = 1;\n}"),
    "enum's value": _proto("enum E {\n  @ = 1;\n}\nmessage A {\n  optional E e = 1 [default = @];\n}"),
    "proto field": _proto("message A {\n  optional int32 @ = 1;\n}"),
    "string default": _proto("message A {\n  optional string a = 1 [default = @];\n}", json.dumps),
    "bytes default": _proto("message A {\n  optional bytes a = 1 [default = @];\n}", json.dumps),
    "package": lambda text: {
        "mapping.yaml": "backend: vendorx\n",
        "caffe.proto": SCHEMA.replace("package small;", f"package {text};"),
    },
    "opset": _opset,
    "hub's files": _rewrites,
}
