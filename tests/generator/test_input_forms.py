"""The forms in which vendors ship their schema: protos as they are saved, pb2 files, FileDescriptorSets."""

from __future__ import annotations

import codecs
import re
from base64 import b64decode
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

from caffeforge.generator.cli import main
from caffeforge.generator.generate import Package, generate
from tests.generator.inputs import SMALL, result

TEXT = (SMALL / "caffe.proto").read_text(encoding="utf-8")
OLD = """import sys
_b=sys.version_info[0]<3 and (lambda x:x) or (lambda x:x.encode('latin1'))
raise RuntimeError("this file was run")
DESCRIPTOR = _descriptor.FileDescriptor(name='caffe.proto', package='small', serialized_pb={})
"""
PYTHON_2 = "raise RuntimeError, 'run'\n"


def compiled(folder: Path, text: str = TEXT) -> tuple[bytes, str]:
    """Return the FileDescriptorSet and the pb2 file that protoc makes of a proto."""
    (folder / "made").mkdir()
    (folder / "made" / "caffe.proto").write_text(text, encoding="utf-8")
    into = [f"--python_out={folder / 'made'}", f"--descriptor_set_out={folder / 'made' / 'set'}"]
    assert protoc.main(["protoc", f"-I{folder / 'made'}", *into, "caffe.proto"]) == 0
    pb2 = (folder / "made" / "caffe_pb2.py").read_text(encoding="utf-8")
    return (folder / "made" / "set").read_bytes(), pb2


def source(folder: Path, name: str, data: bytes) -> Path:
    """Write a schema alone into a folder ``vendorx``, and return it."""
    (folder / "vendorx").mkdir(exist_ok=True)
    (folder / "vendorx" / name).write_bytes(data)
    return folder / "vendorx" / name


def essence(package: Package) -> dict[str, str]:
    """Return what a package says, without comments, their places, the digest and what protobuf adds."""
    files = {name: package.files[name].partition('"""')[2] for name in ("emit.py", "read.py", "coverage.py")}
    held = "".join(re.findall(r'^    "([\w+/=]+)"', package.files["descriptor.py"], re.MULTILINE))
    text = str(FileDescriptorSet.FromString(b64decode(held)))
    return files | {"descriptor.py": re.sub(r" *json_name: .*\n", "", text)}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return essence(generate(source(tmp_path_factory.mktemp("plain"), "caffe.proto", TEXT.encode())))


SAVED = {
    "no syntax line": re.sub(r"syntax.*\n", "", TEXT).encode(),
    "CRLF": TEXT.replace("\n", "\r\n").encode(),
    "BOM": codecs.BOM_UTF8 + TEXT.encode(),
    "GBK": TEXT.encode() + "// 卷积层的参数\n".encode("gbk"),
    "Latin-1": TEXT.encode() + "// Größe\n/* é */\n".encode("latin-1"),
}


@pytest.mark.parametrize("data", SAVED.values(), ids=SAVED.keys())
def test_a_proto_is_read_as_any_editor_saved_it(
    data: bytes, expected: dict[str, str], tmp_path: Path
) -> None:
    assert essence(generate(source(tmp_path, "caffe.proto", data))) == expected


def test_compiled_forms_give_the_package_of_the_proto(expected: dict[str, str], tmp_path: Path) -> None:
    data, pb2 = compiled(tmp_path)
    one = FileDescriptorSet.FromString(data).file[0].SerializeToString()
    latin = repr(one.decode("latin-1"))
    forms = {
        "caffe.desc": data,
        "caffe.pb": data,
        "caffe_pb2.py": pb2.encode(),
        "old_pb2.py": OLD.format(f"_b({latin})").encode(),
        "older_pb2.py": OLD.format(latin).encode(),
        "bytes_pb2.py": OLD.format(repr(one)).encode(),
    }
    for name, form in forms.items():
        assert essence(generate(source(tmp_path, name, form))) == expected, name


def test_a_folder_with_a_compiled_schema_alone_is_a_backend(expected: dict[str, str], tmp_path: Path) -> None:
    path = source(tmp_path, "caffe_pb2.py", compiled(tmp_path)[1].encode())
    assert essence(generate(path.parent)) == expected


def test_a_package_may_have_any_name(tmp_path: Path) -> None:
    other = TEXT.replace("package small;", "package vendor.nets;")
    assert other != TEXT
    package = generate(source(tmp_path, "caffe.proto", other.encode()))
    assert '"vendor.nets"' in package.files["__init__.py"]


BROKEN = {
    "caffe.pb": (b"\xff\xff", "holds no compiled schema"),
    "empty.pb": (b"", "holds no compiled schema"),
    "caffe_pb2.py": (b"x = 1\n", "no serialized schema stands in it"),
    "bad_pb2.py": (b"x = (\n", "is no Python"),
    "print_pb2.py": (PYTHON_2.encode(), "is no Python"),
    "cut_pb2.py": (OLD.format("b'\\xff\\xff'").encode(), "no serialized schema stands in it"),
    "caffe.proto": ("message {".encode("utf-16"), "UTF-16"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_holds_no_schema_is_reported(name: str, tmp_path: Path) -> None:
    data, sentence = BROKEN[name]
    package, found = result(source(tmp_path, name, data))
    assert package is None
    assert [d.id for d in found] == ["proto"]
    assert sentence in found[0].sentence


def test_a_descriptor_whose_types_are_missing_is_reported(tmp_path: Path) -> None:
    file = FileDescriptorProto(name="a.proto", package="caffe")
    file.message_type.add(name="LayerParameter").field.add(
        name="x", number=1, label=1, type=11, type_name=".caffe.Missing"
    )
    data = FileDescriptorSet(file=[file]).SerializeToString()
    (error,) = result(source(tmp_path, "caffe.pb", data))[1]
    assert "is not consistent" in error.sentence
    file.dependency.append("missing.proto")
    data = FileDescriptorSet(file=[file]).SerializeToString()
    (error,) = result(source(tmp_path, "caffe.pb", data))[1]
    assert "needs missing.proto" in error.sentence


def _split(folder: Path, more: str) -> Path:
    """Write the proto with its last message in another file of the usual name, which it imports."""
    head, mark, last = TEXT.rpartition("\nmessage ")
    header = 'syntax = "proto2";\npackage small;\n'
    (folder / "shared").mkdir()
    (folder / "shared" / "caffe.proto").write_text(header + more + mark + last, encoding="utf-8")
    main = head.replace("package small;", 'package small;\nimport "caffe.proto";') + "\n"
    return source(folder, "caffe.proto", main.encode())


def test_imports_are_found_by_include_folders(tmp_path: Path, expected: dict[str, str]) -> None:
    path = _split(tmp_path, "")
    package = generate(path, [tmp_path / "shared"])
    assert essence(package) == expected  # the last message stays the last
    command = [str(path), "-I", str(tmp_path / "shared"), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert main([*command, "--check"]) == 0


def test_an_error_in_an_imported_file_has_its_place_there(tmp_path: Path) -> None:
    path = _split(tmp_path, "message Broken { optional Nothing x = 1; }\n")
    _, found = result(path, [tmp_path / "shared"])
    assert (str(tmp_path / "shared" / "caffe.proto"), 3) in {
        (d.position.file, d.position.line) for d in found
    }
    assert {d.position.file for d in result(path)[1]} == {str(path)}  # it cannot be found at all
