"""What the shipped mappings call verified is compared with that program by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caffeforge.generator.generate import generate, write
from caffeforge.runtime import cli, coverage
from caffeforge.runtime.backends import find
from tests import checkout

# Files whose cases run in a real Caffe.
COMPARED = (
    "prototxt_cases.py",
    "test_bvlc_layers_*.py",
    "test_bvlc_ops_*.py",
    "test_bvlc_master.py",
    "test_layers.py",
    "test_ssd.py",
)


@pytest.mark.parametrize("backend", ["bvlc", "bvlc_master", "ssd"])
def test_every_verified_layer_has_cases_that_run_in_caffe(backend: str) -> None:
    folder = checkout.ROOT / "tests" / "e2e"
    text = "\n".join(path.read_text("utf-8") for pattern in COMPARED for path in sorted(folder.glob(pattern)))
    named = set(re.findall(r"""["']([A-Z]\w*)["']|layers\.([A-Z]\w*)\(""", text))
    named = {name for pair in named for name in pair}
    verified = [name for name, entry in coverage.of(find(backend)).layers.items() if entry.witness]
    assert [name for name in verified if name not in named] == []
    assert len(verified) > 40


def test_a_changed_rule_loses_its_witness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "schemas" / "vendory"
    schema.mkdir(parents=True)
    (schema / "mapping.yaml").write_text(
        "backend: vendory\nextends: bvlc\nlayers:\n"
        "  AbsVal: {rewrite: 'tops[0] = Abs(bottom)'}\n"
        "  LRN: {amend: true, ignore: [engine]}\n"
        "  BNLL: {amend: true, witness: simulator 2, rewrite: 'tops[0] = Softplus(bottom)'}\n"
    )
    write(generate(schema), tmp_path / "generated")
    folder = str(tmp_path / "generated" / "vendory")
    layers = coverage.of(find(Path(folder))).layers
    assert (layers["AbsVal"].witness, layers["LRN"].witness) == ("", "")
    assert (layers["BNLL"].witness, layers["TanH"].witness) == ("simulator 2", "Caffe 1.0")
    assert cli.main(["explain", folder, "BNLL"]) == 0
    assert "verified by simulator 2" in capsys.readouterr().out
    assert cli.main(["coverage", folder]) == 0
    assert (
        "unverified: no witness is named (5):\n    AbsVal, ImageData, LRN, LSTMUnit, MemoryData"
        in capsys.readouterr().out
    )
