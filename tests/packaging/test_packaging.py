"""What users install: wheel and sdist, built from a copy of the checkout, tried in an empty environment."""

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import checkout

USER_SCRIPT = Path(__file__).with_name("user_script.py")


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds caffeforge and nothing else."""

    python: Path
    site_packages: Path

    def borrow_dependencies(self) -> None:
        """Make the running environment's packages importable after this environment's own.

        A folder named in a .pth file is only a place to import from: its own .pth files, and with them an
        editable install of caffeforge, have no effect.
        """
        folders = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
        (self.site_packages / "dependencies.pth").write_text("\n".join(folders))


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints; show all it said where it fails."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout without git, so that only committed and new files can get into a package."""
    folder = tmp_path_factory.mktemp("source")
    for name in checkout.files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout.ROOT / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def sources() -> set[str]:
    """The files of the four packages, relative to the checkout."""
    return {str(name) for name in checkout.files() if name.parts[0] in checkout.PACKAGES}


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, both built from the copy."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "build", "--no-isolation", "--sdist", "--wheel", "--outdir", folder)
    run(*build, source, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    (path,) = built.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def release(sdist: Path) -> str:
    """The name with the version: caffeforge-0.1.0."""
    return sdist.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel_of_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds where only the sdist is to be had."""
    folder = tmp_path_factory.mktemp("wheel_of_sdist")
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, sdist, cwd=folder)
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(params=["wheel", "wheel_of_sdist"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Environment:
    """An environment into which the wheel or the sdist was installed, still without dependencies."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    purelib = run(python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index")
    run(*pip, request.getfixturevalue(request.param), cwd=tmp_path)
    return Environment(python, Path(purelib.strip()))


def test_wheel_holds_the_four_packages_and_nothing_else(wheel: Path, sources: set[str], release: str) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if name.startswith(f"{release}.dist-info/")}
    assert f"{release}.dist-info/licenses/LICENSE" in metadata
    assert names - metadata == {f"caffeforge/{name}" for name in sources}


def test_sdist_holds_the_four_packages_and_what_builds_them(
    sdist: Path, sources: set[str], release: str
) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name for member in archive if not member.isdir()}
    others = {"pyproject.toml", "README.md", "LICENSE", ".gitignore", "PKG-INFO"}
    assert names == {f"{release}/{name}" for name in sources | others}


@pytest.mark.parametrize("kind", ["*.proto", "*.yaml", "*.json", "py.typed"])
def test_data_files_are_among_them(sources: set[str], kind: str) -> None:
    assert any(Path(name).match(kind) for name in sources)


def test_sdist_builds_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    assert wheel_of_sdist.name == wheel.name
    assert wheel_of_sdist.read_bytes() == wheel.read_bytes()


def test_installs_one_package_and_two_commands(environment: Environment, release: str) -> None:
    installed = {path.name for path in environment.site_packages.iterdir()}
    assert installed == {"caffeforge", f"{release}.dist-info"}
    scripts = {path.name for path in environment.python.parent.iterdir()}
    assert scripts >= {"caffeforge", "gen-backend"}


def test_exports_and_runs_a_model(environment: Environment, tmp_path: Path) -> None:
    environment.borrow_dependencies()
    run(environment.python, "-I", USER_SCRIPT, cwd=tmp_path)


def test_exports_and_runs_a_model_without_schemas(environment: Environment, tmp_path: Path) -> None:
    environment.borrow_dependencies()
    shutil.rmtree(environment.site_packages / "caffeforge" / "schemas")
    run(environment.python, "-I", USER_SCRIPT, cwd=tmp_path)
