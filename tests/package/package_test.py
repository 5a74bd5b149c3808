"""What `cmake --install` gives, and small projects outside the tree that use it.

package_test.py NAME SOURCES BUILD WORK    NAME is a function below; `installed` comes first

It installs the build twice: to WORK/here; and, by DESTDIR, for a prefix that does not exist, from where it
is moved to WORK/moved. What works there depends on no place that it was made for."""

import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
NOWHERE = "/opt/cistern-of-nobody"
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
CXX = os.environ.get("CXX", "c++")
HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **environment):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                            env={**os.environ, **environment})
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def check(holds, message):
    if not holds:
        sys.exit(message)


def files(top):
    return sorted(path.relative_to(top) for path in top.rglob("*") if not path.is_dir())


@contextlib.contextmanager
def kept_manifest(build):
    """CMake lists in the build what it has installed, and cpack does too. A user's list stays: by it
    they remove what they have installed. Where there was none, there is none afterwards."""
    manifest = build / "install_manifest.txt"
    before = manifest.read_bytes() if manifest.exists() else None
    try:
        yield
    finally:
        if before is None:
            manifest.unlink(missing_ok=True)
        else:
            manifest.write_bytes(before)


def library_folder(prefix):
    return next(prefix.rglob("libcistern.a")).parent


def needed(binary):
    return re.findall(r"\(NEEDED\).*\[(.*?)\]", run("readelf", "-d", binary))


# ---- What there is -------------------------------------------------------------------------------


def installed(sources, build, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    here, moved = work / "here", work / "moved"
    with kept_manifest(build):
        run("cmake", "--install", build, "--prefix", here)
        run("cmake", "--install", build, "--prefix", NOWHERE, DESTDIR=str(work / "stage"))
    (work / "stage" / NOWHERE[1:]).rename(moved)
    check(files(here) == files(moved), "DESTDIR gives other files")
    check(not files(work / "stage"), f"outside of the prefix: {files(work / 'stage')}")

    there = [str(path) for path in files(here)]
    for name in ("LICENSE", "libcistern.a", "libcistern.so", "libcistern.so.0", "cistern.pc",
                 "cistern-static.pc", "cisternConfig.cmake", "cisternConfigVersion.cmake",
                 "cisternTargets.cmake"):
        check(any(path.endswith("/" + name) for path in there), f"{name} is not installed")
    if (build / "interop/command/share").is_dir():  # the command was built
        for name in ("man/man1/cistern.1", "bash-completion/completions/cistern"):
            check(f"share/{name}" in there and (here / "share" / name).stat().st_size > 1000, f"{name} is not installed")
    headers = [path for path in there if path.startswith("include/")]
    check(len(headers) <= 30, f"{len(headers)} headers")
    headers.remove("include/cistern-cccl/memory_resource.hpp")
    check(all(re.fullmatch(r"include/cistern/(handles/)?\w+\.hp?p?", path) for path in headers), headers)

    places = [str(p).encode() for p in {work, sources, build, sources.resolve(), build.resolve()}]
    for top in (here, moved):
        for path in files(top):
            content = (top / path).read_bytes()
            of_text = [NOWHERE.encode()] if b"\0" not in content else []
            for place in places + of_text:
                check(place not in content, f"{path} names {place.decode()}")
    for top in (here, moved):
        command = top / "bin" / "cistern"
        if command.exists():
            check(not re.search("R(UN)?PATH", run("readelf", "-d", command)), "the command has an rpath")
            run(command, "--version")
            lonely(command, work / "lonely" / "bin" / "cistern")


def lonely(command, copy):
    """The command without the rest of the package says where it has looked for it, each place once."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(command, copy)
    environment = {name: value for name, value in os.environ.items() if name != "CISTERN_PRELOAD"}
    ended = subprocess.run([copy, "run", "--", "true"], capture_output=True, text=True, env=environment)
    looked = re.search(r"looked for (.*) \(", ended.stderr)
    check(ended.returncode != 0 and looked, f"cistern run without its library: {ended.stderr}")
    places = looked[1].split(", ")
    check(len(places) == len(set(places)), f"a place is named twice: {looked[1]}")


def libraries(sources, build, work):
    shared = library_folder(work / "here") / "libcistern.so"
    system = r"lib(stdc\+\+|c\+\+|c\+\+abi|gcc_s|m|c|dl|rt|pthread)\.so\.\d+|ld-linux.*"
    vendors = [name for name in needed(shared) if not re.fullmatch(system, name)]
    check(not vendors, f"libcistern.so needs {vendors}")
    dynamic = run("readelf", "-d", shared)
    check("STATIC_TLS" not in dynamic, "a program that runs already cannot load the library")
    ctypes.CDLL(str(shared))
    check("[libcistern.so.0]" in dynamic, "the name that programs keep is not libcistern.so.0")
    check(not re.search("R(UN)?PATH", dynamic), "libcistern.so has an rpath")
    for line in run("nm", "-D", "--defined-only", shared).splitlines():
        name = line.split()[-1].split("@")[0]
        check(re.match(r"_ZN?K?7cistern|_ZT[ISV]N7cistern|_ZNK?7cistern|cistern_|CISTERN_0$|InitializeInjectionNvtx2$", name),
              f"libcistern.so shows {name}")


def headers(sources, build, work):
    top = work / "here" / "include"
    alone = work / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir()
    other = "clang++" if shutil.which("clang++") else CXX
    # Each header alone in both standards, as the standard library includes less of itself in C++20; and
    # all of them at once for each compiler and standard.
    alone_by = [(CXX, "c++17"), (other, "c++20")]
    # cistern-cccl takes CCCL's headers: tests/cccl compiles it.
    plain = [path for path in files(top) if path.parts[0] == "cistern"]
    together = "".join(f"#include <{path}>\n" for path in reversed(plain))
    jobs = [(compiler, standard, together, alone / f"all-{compiler.replace('/', '_')}-{standard}.cpp")
            for compiler in {CXX, other} for standard in ("c++17", "c++20")]
    # As programs are compiled that do without both: what the library throws ends them.
    jobs += [(compiler, "c++17", together, alone / f"bare-{compiler.replace('/', '_')}.cpp",
              "-fno-exceptions", "-fno-rtti") for compiler in {CXX, other}]
    # After headers that make ordinary words macros. The standard library, which those would break, is first.
    of_standard = "".join(sorted({line for path in plain for line in re.findall(
        r"^#include <.*>\n", (top / path).read_text(), re.M)}))
    macros = f'#include "{HERE / "macros.h"}"\n'
    kept = "Status is_a_macro_still = 0;\n"
    jobs += [(compiler, "c++17", of_standard + macros + together + kept,
              alone / f"macros-{compiler.replace('/', '_')}.cpp") for compiler in {CXX, other}]
    jobs.append(("gcc", "c99", "#include <stddef.h>\n#include <stdint.h>\n" + macros +
                 "#include <cistern/cistern.h>\n", alone / "macros.c"))
    for number, path in enumerate(plain):
        text = f"#include <{path}>\n#include <{path}>\n"
        if path.suffix == ".h":
            jobs.append(("gcc", "c99", text, alone / f"{number}.c"))
        jobs += [(compiler, standard, text, alone / f"{number}-{standard}.cpp")
                 for compiler, standard in alone_by]

    def compile_one(job):
        compiler, standard, text, file, *options = job
        file.write_text(text)
        command = [compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", str(top), str(file)]
        command += options
        result = subprocess.run(command, capture_output=True, text=True)
        return f"{' '.join(command)}\n{result.stderr}" if result.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(compile_one, jobs) if text]
    check(not wrong, "\n".join(wrong))
    for path in plain:
        if path.suffix == ".hpp":
            says_the_standard(other, path, top, alone / "old.cpp")
    says_the_standard(CXX, "cistern/cistern.hpp", top, alone / "old.cpp")

    # What including it all costs a program, beside the standard library.
    (alone / "all.cpp").write_text("#include <cistern/cistern.hpp>\n")
    ours, lines = False, 0
    for line in run(CXX, "-std=c++17", "-E", "-I", top, alone / "all.cpp").splitlines():
        if line.startswith("# "):
            ours = str(top) in line
            check("fmt/" not in line, f"a header of ours includes {line}")
        elif ours and line.strip():
            lines += 1
    check(0 < lines <= 2000, f"cistern/cistern.hpp: {lines} lines of our own")


def says_the_standard(compiler, header, top, file):
    """Under an older standard the first error of a header says which it needs."""
    file.write_text(f"#include <{header}>\n")
    command = [compiler, "-std=c++14", "-Wfatal-errors", "-fsyntax-only", "-I", str(top), str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
    first = next((line for line in result.stderr.splitlines() if re.search(r"\berror: ", line)), "none")
    check(result.returncode and "compile with -std=c++17" in first, f"{' '.join(command)}: {first}")


# ---- Projects ------------------------------------------------------------------------------------


def project(folder, name, prefix, **settings):
    """Configures and builds the project in `folder`; returns where it was built."""
    target = prefix.parent / f"{name}-{prefix.name}"
    shutil.rmtree(target, ignore_errors=True)
    # None of what Cistern itself is built with.
    absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON"
              for package in ("fmt", "CLI11", "nlohmann_json", "ZLIB", "Catch2", "benchmark")]
    run("cmake", "-S", folder, "-B", target, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *absent,
        *(f"-D{key}={value}" for key, value in settings.items()))
    run("cmake", "--build", target, "-j", "2")
    return target


def found(name, prefix, **settings):
    """The project that finds Cistern; returns its program, which has run."""
    chosen = {"STANDARD": 17, "COMPONENTS": "", "TARGETS": "cistern::cistern",
              "PROGRAM": HERE / "program.cpp", **settings}
    program = project(HERE / "found", name, prefix, **chosen) / "program"
    check("the same memory again: yes" in run(program), "the program does not work")
    return program


NO_TOOLKIT = {"CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit": "ON"}


def static(sources, build, work):
    settings = {} if cuda_runtime(work) else NO_TOOLKIT
    for prefix in (work / "here", work / "moved"):
        program = found("static", prefix, **settings)
        check(not any("cistern" in name for name in needed(program)), "it is not the archive")
    if cuda_runtime(work):
        command = ["cmake", "-S", HERE / "found", "-B", work / "no-toolkit", "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={work / 'here'}", "-DSTANDARD=17",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON"]
        result = subprocess.run(command, capture_output=True, text=True)
        said = " ".join(result.stderr.split())
        check(result.returncode != 0 and "built with CUDA" in said and "COMPONENTS shared" in said,
              f"the archive without a toolkit: {said}")


def shared(sources, build, work):
    program = found("shared", work / "here", STANDARD=20, COMPONENTS="shared", **NO_TOOLKIT)
    check("libcistern.so.0" in needed(program), "COMPONENTS shared: not the shared library")
    program = found("shared", work / "moved", STANDARD=20, BUILD_SHARED_LIBS="ON", **NO_TOOLKIT)
    check("libcistern.so.0" in needed(program), "BUILD_SHARED_LIBS: not the shared library")


def handles(sources, build, work):
    config = next((work / "here").rglob("cisternConfig.cmake")).read_text()
    names = re.findall(r"^_cistern_handles\((\w+) ", config, re.M)
    if not names:
        skip("this build has no handles")
    for prefix in (work / "here", work / "moved"):
        program = project(HERE / "handles", "handles", prefix, COMPONENTS=";".join(names),
                          BUILD_SHARED_LIBS="ON") / "program"
        check(not any("libcistern" in name for name in needed(program)), "it is not the archive")


def pkgconfig_flags(prefix, name, *options):
    path = str(library_folder(prefix) / "pkgconfig")
    return run("pkg-config", "--cflags", "--libs", *options, name, PKG_CONFIG_LIBDIR=path).split()


def linked_by_hand(compiler, source, prefix, name, *options):
    program = prefix.parent / f"{name}-{source.suffix[1:]}-{prefix.name}"
    run(*compiler, *WARNINGS, source, "-o", program, *pkgconfig_flags(prefix, name, *options))
    run(program, LD_LIBRARY_PATH=str(library_folder(prefix)))
    return program


def pkgconfig(sources, build, work):
    if not shutil.which("pkg-config"):
        skip("there is no pkg-config")
    # The archive of a build with CUDA is linked with the toolkit's folder besides (-L).
    ways = [("cistern", [])]
    if not cuda_runtime(work):
        ways += [("cistern", ["--static"]), ("cistern-static", [])]
    for prefix in (work / "here", work / "moved"):
        for name, options in ways:
            program = linked_by_hand([CXX, "-std=c++17"], HERE / "program.cpp", prefix, name, *options)
            check(("libcistern.so.0" in needed(program)) == (name == "cistern"), f"{name}: the other one")
    if not cuda_runtime(work):  # such a program runs also where there is a runtime of HIP's to load
        for whole in ("-static", "-static-pie"):
            linked_by_hand([CXX, "-std=c++17", "-fPIE", whole], HERE / "program.cpp", work / "here",
                           "cistern-static")


def debian(sources, build, work):
    """The Debian package has what is installed, and works from where it is unpacked."""
    if not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "file"))):
        skip("CPack needs dpkg-dev and file for it")
    target = work / "debian"
    with kept_manifest(build):
        run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", target)
    package, = target.glob("cistern_*.deb")
    run("dpkg-deb", "-x", package, target / "root")
    prefix = target / "root" / "usr"
    check(files(prefix) == files(work / "here"), f"other files: {files(prefix)}")
    check("libc6" in run("dpkg-deb", "-f", package, "Depends"), "it does not say what it needs")
    found("found", prefix, COMPONENTS="shared", **NO_TOOLKIT)


def cuda_runtime(work):
    return "cudart" in next((work / "here").rglob("cistern-static.pc")).read_text()


def c(sources, build, work):
    if not (work / "here/include/cistern/cistern.h").exists():
        skip("there is no cistern/cistern.h yet")
    for target in ("static", "shared"):
        built = project(HERE / "plain_c", f"plain_c-{target}", work / "moved",
                        PROGRAM=HERE / "program.c", TARGETS=f"cistern::{target}")
        run(built / "program")
    if not shutil.which("pkg-config"):
        return
    names = ["cistern"] if cuda_runtime(work) else ["cistern", "cistern-static"]
    for prefix in (work / "here", work / "moved"):
        for name in names:
            linked_by_hand(["gcc", "-std=c99"], HERE / "program.c", prefix, name)


def beside(sources, build, work):
    launcher = os.environ.get("LAUNCHER", "")
    target = work / "beside"
    run("cmake", "-S", HERE / "beside", "-B", target, "-G", "Ninja", f"-DCISTERN={sources}",
        f"-DPROGRAM={HERE / 'program.cpp'}", "-DCISTERN_CUDA=OFF", "-DCISTERN_HIP=OFF",
        "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16",  # quick to compile
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}",
        *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
          for name in ("CLI11", "nlohmann_json", "ZLIB", "Catch2", "benchmark")))
    run("cmake", "--build", target, "-j", "2")
    check("the same memory again: yes" in run(target / "program"), "the program does not work")
    check(not list(target.rglob("libcistern.so*")), "what is not linked is built")
    run("cmake", "--install", target, "--prefix", work / "of-beside")
    check(not files(work / "of-beside"), f"installed: {files(work / 'of-beside')}")


def examples(sources, build, work):
    target = project(sources / "examples", "examples", work / "moved")
    # On the simulated device, also where there is a GPU.
    hidden = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
    names = [path.stem for path in sorted((sources / "examples").glob("*.c*"))]
    check(len(names) >= 6, f"examples: {names}")
    for name in names:
        if (target / name).exists():
            print(f"== {name}\n{run(target / name, **hidden)}")
        else:
            check(name == "c_api", f"{name} was not built")


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
