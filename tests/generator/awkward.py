"""Schemas with the names, numbers and forms that vendors really use and a generator stumbles over."""

from __future__ import annotations

import re
from pathlib import Path

from caffeforge.generator.generate import Package, generate
from caffeforge.generator.schema_folder import SCHEMAS

BVLC = (SCHEMAS / "bvlc" / "caffe.proto").read_text(encoding="utf-8")
PACKAGES = ("caffe", "domi.caffe", "mo_caffe", "")
# None is a value of synopsys's enums, lambda a field of NVCaffe's ELUParameter, pad_out_W one of Cambricon's;
# 8266715 is Acuity's interp_param, and 536870911 the largest number there is.
ODD = """
message OddParameter {
  enum Method {
    option allow_alias = true;
    Below = -2;
    None = 1;
    Nothing = 1;
    True = 7;
  }
  enum Type { FIRST = 1; SECOND = 2; }
  required float lambda = 1;
  optional float min = 2 [default = -1];
  optional float max = 3 [default = inf];
  optional int32 type = 4;
  optional string format = 5 [default = "a \\"b\\" \\\\c"];
  optional string copyright = 6;
  repeated float iter = 8;
  optional int32 id = 9;
  optional bool input = 10;
  optional Method saturate = 11 [default = None];
  optional Method floor = 12 [default = Below];
  optional Type kind = 13;
  optional int32 pad_out_W = 14;
  optional int32 class = 15;
  optional int32 print = 16;
  optional int32 self = 17;
  optional float toPower = 536870911 [default = nan];
}
"""
MAPPING = """backend: odd
extends: bvlc
types: {Odd: Odd_param}
layers:
  Odd:
    ignore: [type, format, copyright, iter, id, input, kind, pad_out_W, class, print, self, toPower]
    require:
      - {expr: saturate == "None" and floor == "Below", else: other methods are not known}
    rewrite: "tops[0] = Clip(Mul(bottom, lambda_), min=min, max=param.max)"
custom:
  odd.Squash:
    inputs: [X]
    attributes: {factor: float, low: float}
    shape: X.shape
    reference: Y = Clip(Mul(X, factor), min=low)
ops:
  odd.Squash:
    layer: Odd
    fields:
      lambda: factor
      min: low
      type: 2
      format: '"None"'
      iter: "[1.0, 2.0]"
      id: -1
      input: true
      saturate: None
      floor: Below
      kind: SECOND
      pad_out_W: 3
      class: 4
      print: 5
      self: 6
      toPower: 0.5
"""


def proto(package: str) -> str:
    """Return bvlc's proto with the awkward message, in a package."""
    head = f"package {package};" if package else ""
    text = re.sub(r"^package caffe;", head, BVLC, flags=re.MULTILINE)
    field = "message LayerParameter {\n  optional OddParameter Odd_param = 8266715;"
    return text.replace("message LayerParameter {", field) + ODD


def made(package: str, folder: Path) -> Package:
    """Return the package of the awkward schema, whose source stands below `folder`."""
    source = folder / f"odd_{package.replace('.', '_') or 'bare'}"
    source.mkdir(parents=True)
    (source / "caffe.proto").write_text(proto(package), encoding="utf-8")
    (source / "mapping.yaml").write_text(MAPPING.replace("backend: odd", f"backend: {source.name}"))
    return generate(source)
