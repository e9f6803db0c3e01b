"""Files that are missing, no text, or saved by other editors; what is written, and what is left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from caffeforge.generator.cli import main
from caffeforge.generator.generate import differences, generate
from caffeforge.generator.generate import write as write_package
from tests.generator.inputs import BACKEND, HUB, SMALL, ids, mapping, write

RULE = "ops:\n  Selu: {layer: ReLU}\n"
WRONG = "ops:\n  Rellu: {layer: ReLU}\n"
PROTO = (SMALL / "caffe.proto").read_text(encoding="utf-8")


def _hub(folder: Path, **changed: str) -> Path:
    files = {name: (HUB / name).read_text(encoding="utf-8") for name in ("opset.json", "ops.yaml")}
    return write(folder, files | {"rewrites.yaml": "fusions: {}\n"} | changed)


def test_a_path_that_is_no_schema_is_reported(tmp_path: Path) -> None:
    folder = write(tmp_path, {"README.md": "", "notes.yaml": BACKEND})
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (folder, folder / "README.md", folder / "notes.yaml", tmp_path / "link", tmp_path / "no"):
        assert ids(path) == ["no-input"], path


def test_a_folder_in_the_place_of_a_file_is_reported(tmp_path: Path) -> None:
    folder = write(tmp_path, {"mapping.yaml": BACKEND})
    (folder / "caffe.proto").mkdir()
    assert ids(folder) == ["no-input"]
    (folder / "caffe.proto").rmdir()
    (folder / "mapping.yaml").unlink()
    (folder / "mapping.yaml").mkdir()
    assert ids(folder) == ["no-input"]
    hub = _hub(tmp_path)
    (hub / "rewrites.yaml").unlink()
    (hub / "rewrites.yaml").mkdir()
    assert ids(hub) == ["no-input"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    folder = mapping(tmp_path, RULE)
    (folder / "mapping.yaml").chmod(0)
    assert ids(folder) == ["no-input"]


def test_a_mapping_or_a_proto_can_be_named_for_its_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, {"mapping.yaml": BACKEND, "caffe.proto": PROTO})
    whole = generate(folder)
    assert generate(folder / "mapping.yaml") == generate(folder / "caffe.proto") == whole


def test_a_proto_may_have_any_name(tmp_path: Path) -> None:
    files = {"mapping.yaml": "backend: vendorx\n", "-a: b.proto": PROTO}
    package = generate(write(tmp_path, files) / "-a: b.proto")
    assert "schemas/vendorx/-a: b.proto" in package.files["emit.py"]
    assert "caffe.proto" not in package.files["emit.py"]


def test_comments_of_a_proto_need_not_be_utf_8(tmp_path: Path) -> None:
    gbk = PROTO.replace("// The sizes", "// 尺寸").encode("gbk")
    layers = generate(write(tmp_path, {"mapping.yaml": BACKEND, "caffe.proto": gbk})).files["layers.py"]
    assert ' of a blob. (caffe.proto:5)"""' in layers


def test_line_ends_and_byte_order_marks_change_nothing(tmp_path: Path) -> None:
    text = f"{BACKEND}ops:\n  Selu:\n    rewrite: |\n      a = Neg(X)\n      Y = Neg(a)\n"
    files = {"mapping.yaml": text, "caffe.proto": f"// one\n// two\n{PROTO}"}
    plain = generate(write(tmp_path, files))
    for start in ("", "\ufeff"):
        windows = {name: start + content.replace("\n", "\r\n") for name, content in files.items()}
        assert generate(write(tmp_path, windows)) == plain
    hub = generate(_hub(tmp_path))
    texts = {name: (HUB / name).read_text(encoding="utf-8") for name in ("opset.json", "ops.yaml")}
    assert generate(_hub(tmp_path, **{n: t.replace("\n", "\r\n") for n, t in texts.items()})) == hub


def test_places_are_the_same_with_windows_line_ends(tmp_path: Path) -> None:
    text = f"{BACKEND}ops:\n  Selu:\n    rewrite: |\n      a = Neg(X)\n      Y = Wrong(a)\n"
    from tests.generator.inputs import result

    plain = result(write(tmp_path, {"mapping.yaml": text}))[1]
    assert [(d.position.line, d.position.column) for d in plain] == [(7, 11)]
    assert result(write(tmp_path, {"mapping.yaml": text.replace("\n", "\r\n")}))[1] == plain


def test_a_folder_without_a_mapping_inherits_bvlc(tmp_path: Path) -> None:
    bvlc = HUB.parent / "bvlc"
    files = {"caffe.proto": (bvlc / "caffe.proto").read_text(encoding="utf-8")}
    package, base = generate(write(tmp_path, files)), generate(bvlc)
    assert package.name == "vendorx"
    rules = {name: text.split("\n", 5)[5] for name, text in package.files.items() if name == "emit.py"}
    assert rules == {"emit.py": base.files["emit.py"].split("\n", 5)[5]}


def test_a_folder_without_a_mapping_needs_a_name_that_is_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "caffe-1.2"
    folder.mkdir()
    (folder / "caffe.proto").write_text(PROTO, encoding="utf-8")
    assert "backend-name" in ids(folder)


def test_a_folder_called_as_a_shipped_one_does_not_stand_for_it(tmp_path: Path) -> None:
    """Without a mapping of its own it is a dialect like others, and no base of those beside it."""
    folder = tmp_path / "bvlc"
    folder.mkdir()
    (folder / "caffe.proto").write_text((HUB.parent / "bvlc" / "caffe.proto").read_text(encoding="utf-8"))
    assert ids(folder) == []
    assert ids(write(tmp_path, {"mapping.yaml": "backend: vendorx\nextends: bvlc\n"})) == []


def test_all_errors_of_a_run_are_shown_in_order_once_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = mapping(tmp_path, WRONG)
    second = tmp_path / "another"
    second.mkdir()
    (second / "mapping.yaml").write_text("backend: another\nextends: vendorx\n", encoding="utf-8")
    sources = [str(second), str(tmp_path / "small"), str(first)]
    assert main([*sources, "--out", str(tmp_path / "out")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == sorted(set(lines)) and len(lines) == 1
    assert not (tmp_path / "out").exists()


def test_a_package_is_written_once_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(mapping(tmp_path, RULE)), str(tmp_path / "out")
    assert main([source, "--out", out, "--check"]) == 1
    assert "missing: " in capsys.readouterr().out
    assert main([source, "--out", out]) == 0
    assert main([source, "--out", out, "--check"]) == 0
    before = {path: path.stat().st_mtime_ns for path in Path(out).rglob("*")}
    assert main([source, "--out", out]) == 0
    assert {path: path.stat().st_mtime_ns for path in Path(out).rglob("*")} == before
    (Path(out) / "vendorx" / "emit.py").write_bytes(b"# @generated by gen-backend. DO NOT EDIT.\n\xff\n")
    (Path(out) / "vendorx" / "old.py").write_text("# @generated by gen-backend. DO NOT EDIT.\n")
    assert main([source, "--out", out, "--check"]) == 1
    shown = capsys.readouterr().out
    assert "emit.py (generated)" in shown and "extra: " in shown
    assert main([source, "--out", out]) == 0
    assert differences(generate(Path(source)), Path(out)) == []


def test_what_gen_backend_did_not_write_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = mapping(tmp_path, RULE), tmp_path / "out"
    (out / "vendorx").mkdir(parents=True)
    own = out / "vendorx" / "emit.py"
    own.write_text("# my own\n", encoding="utf-8")
    assert main([str(source), "--out", str(out)]) == 1
    assert "is no file of gen-backend" in capsys.readouterr().err
    assert [path.name for path in (out / "vendorx").iterdir()] == ["emit.py"]
    assert own.read_text(encoding="utf-8") == "# my own\n"


def test_a_package_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_package(generate(mapping(tmp_path, "")), out)
    before = {path.name: path.read_bytes() for path in (out / "vendorx").iterdir()}
    package = generate(mapping(tmp_path, RULE))
    text = Path.write_text

    def full_disk(path: Path, *arguments: str, **options: str) -> int:
        if path.name == ".read.py.part":
            raise OSError(28, "No space left on device", str(path))
        return text(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_package(package, out)
    assert {path.name: path.read_bytes() for path in (out / "vendorx").iterdir()} == before
