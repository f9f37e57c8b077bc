"""Builds the CMake project of docs/guide/cpp.md with each package of the C library, and compiles the page's fragments.

``test_pages.py`` runs the page with the library that ``make build-c`` has installed. ``RNET_C_PACKAGES`` is a folder of
packages to test; by default this makes them of the development profile.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from played_page import C_PREFIX, GIVEN, LIMIT_S, ROOT, Play, blocks, play_in

PAGE = ROOT / "docs" / "guide" / "cpp.md"
LIBRARIES = ROOT / "target" / "c" / "lib"


def the_file(name: str) -> str:
    (lines,) = [lines for _, found, lines in blocks(PAGE) if found == name]
    return "\n".join([*lines, ""])


def the_fragment(language: str, part: str) -> str:
    (lines,) = [lines for _, name, lines in blocks(PAGE, language) if not name and part in "\n".join(lines)]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "RNET_C_PACKAGES" in os.environ:
        return Path(os.environ["RNET_C_PACKAGES"])
    folder = tmp_path_factory.mktemp("packages")
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    command = [ROOT / "scripts" / "dist-c.sh", LIBRARIES, glibc, folder]
    fast = dict(os.environ, DPKG_DEB_COMPRESSOR_TYPE="none")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=fast)
    return folder


@pytest.fixture
def project() -> Iterator[Play]:
    """An empty folder with the CMake project of the page, that does not know the library."""
    with play_in() as play:
        for name in ("CMakeLists.txt", "talker.cpp", "listener.py"):
            (play.where / name).write_text(the_file(name))
        del play.environment["CMAKE_PREFIX_PATH"], play.environment["PKG_CONFIG_PATH"]
        yield play


def runs_with_python(play: Play, program: str, library: Path | None) -> None:
    """Runs the program against the subscriber in Python, and checks which library it has loaded."""
    play.block("listener", ["$ python listener.py"])
    said = play.block("", [f"$ {program}"])
    assert said == [f"$ {program}"]
    assert play.block("listener", [""] * 3) == [f"b'hello, robot {n}'" for n in range(3)]
    loaded = re.findall(r"librnet\.so\.1 => (\S+)", "\n".join(play.block("", [f"$ ldd {program}"])))
    assert [Path(path).resolve() for path in loaded] == ([library.resolve()] if library else [])


def build(play: Play, options: str = "") -> None:
    said = play.block("", [f"$ cmake -B build . {options} && cmake --build build"])
    assert not said[-1].startswith("exit status"), "\n".join(said)


def test_builds_with_fetch_content_of_the_tarball(project: Play, packages: Path) -> None:
    (tarball,) = packages.glob(f"rnet-c-*-{platform.machine()}.tar.gz")
    fetch = the_fragment("cmake", "FetchContent_Declare")
    # The page names the tarball of a release.
    fetch, count = re.subn(r"https://\S*/rnet-c-[0-9.]+-x86_64\.tar\.gz", str(tarball), fetch)
    lists, found = re.subn(r"find_package\(rnet .*\n", fetch, the_file("CMakeLists.txt"))
    assert count == found == 1
    (project.where / "CMakeLists.txt").write_text(lists)
    build(project)
    runs_with_python(project, "build/talker", project.where / "build" / "_deps" / "rnet-src" / "lib" / "librnet.so.1")


def test_builds_with_the_static_library_of_the_tarball(project: Play, packages: Path) -> None:
    (tarball,) = packages.glob(f"rnet-c-*-{platform.machine()}.tar.gz")
    subprocess.run(["tar", "-xzf", tarball, "--one-top-level=rnet", "--strip-components=1"], cwd=project.where, check=True)
    lists = the_file("CMakeLists.txt").replace("rnet::cpp", "rnet::cpp_static").replace("(rnet ", "(rnet 0.1 ")
    (project.where / "CMakeLists.txt").write_text(lists)
    build(project, "-DCMAKE_PREFIX_PATH=$PWD/rnet")
    runs_with_python(project, "build/talker", None)


def test_builds_with_the_installed_debian_packages(project: Play, packages: Path) -> None:
    if not shutil.which("dpkg"):
        pytest.skip("dpkg is not installed")
    root = project.where / "root"
    (root / "var" / "lib" / "dpkg" / "updates").mkdir(parents=True)
    (root / "var" / "lib" / "dpkg" / "status").touch()
    # Their dependencies are those of the machine.
    force = [f"--force-{what}" for what in ("not-root", "depends", "bad-path", "architecture")]
    debs = [next(packages.glob(f"{name}_*.deb")) for name in ("librnet1", "librnet-dev")]
    subprocess.run(["dpkg", f"--root={root}", *force, "--install", *debs], check=True, stdout=subprocess.DEVNULL)
    build(project, f"-DCMAKE_PREFIX_PATH={root}/usr")
    (library,) = root.glob("usr/lib/*/librnet.so.1")
    runs_with_python(project, "build/talker", library)

    project.environment["PKG_CONFIG_PATH"] = str(library.parent / "pkgconfig")
    (project.where / "talker.c").write_text(the_file("talker.c"))
    said = project.block("", ["$ cc -Wall -Wextra -Werror talker.c -o talker $(pkg-config --cflags --libs rnet)"])
    assert len(said) == 1, said
    dpkg = subprocess.run(["dpkg", f"--root={root}", *force, "--remove", "librnet-dev", "librnet1"], stdout=subprocess.DEVNULL)
    assert dpkg.returncode == 0 and not library.exists()


def test_builds_in_a_colcon_workspace(tmp_path: Path) -> None:
    if not Path("/usr/share/ament_cmake").exists() or not Path("/usr/lib/python3/dist-packages/colcon_ros").exists():
        pytest.skip("ament_cmake or colcon is not installed")
    package = tmp_path / "src" / "talker"
    package.mkdir(parents=True)
    (package / "talker.cpp").write_text(the_file("talker.cpp"))
    (package / "package.xml").write_text(the_file("package.xml"))
    (package / "CMakeLists.txt").write_text(the_fragment("cmake", "ament_package"))
    (command,) = [lines[0] for _, _, lines in blocks(PAGE, "sh") if lines[0].startswith("colcon build")]
    # With the Python of the system, which has the packages of ament.
    built = subprocess.run(
        command.replace("$HOME/rnet", str(C_PREFIX)),
        shell=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    program = tmp_path / "install" / "talker" / "lib" / "talker" / "talker"
    assert built.returncode == 0 and program.exists(), built.stdout


@pytest.mark.parametrize("language", ["cpp", "c"])
def test_fragments_compile(language: str, tmp_path: Path) -> None:
    head = {
        "cpp": "#include <rnet/rnet.hpp>\n#include <rnet/msgs/plain.hpp>\n#include <algorithm>\n#include <iostream>\n"
        "using namespace std::chrono_literals;\n",
        "c": "#include <rnet.h>\n#include <stdio.h>\n",
    }[language]
    given = (GIVEN / "cpp" / f"names.{language}").read_text()
    fragments = ["\n".join(lines) for _, name, lines in blocks(PAGE, language) if not name]
    assert len(fragments) >= 2
    functions = [f"void fragment_{n}(void) {{\n{given}{code}\n}}\n" for n, code in enumerate(fragments)]
    source = tmp_path / f"fragments.{language}"
    source.write_text("\n".join([head, *functions]))
    compiler = {"cpp": ["g++", "-std=c++17"], "c": ["gcc", "-std=c11"]}[language]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused"]
    command = [*compiler, *warnings, "-fsyntax-only", f"-I{C_PREFIX}/include", source]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert compiled.returncode == 0, compiled.stderr
