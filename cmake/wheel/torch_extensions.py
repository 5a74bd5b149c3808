"""Compiles the extension of `cistern.torch` for each release of PyTorch that torch_releases.py has kept.

torch_extensions.py RELEASES LIBCISTERN OUT COMPILER ARGUMENT...

OUT then has the extensions, and table.json, which `_compiled.py` of the package reads. The table has for each release
2.x the headers that the compiler read, and for each digest of these headers the name and the size of the extension."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "interop/python/cistern/torch"))
import _digest  # noqa: E402  # not by the package, which has to find its library


def run(*command):
    subprocess.run(list(map(str, command)), check=True)


def headers_read(dependencies, include):
    """The headers of PyTorch that the compiler read, as paths below `include`. Without version.h: a patch
    release changes that, and most change nothing else."""
    words = dependencies.read_text().replace("\\\n", " ").split()
    return sorted({os.path.relpath(word, include) for word in words
                   if word.startswith(f"{include}/") and not word.endswith("/version.h")})


def compile_for(torch, library, scratch, compiler):
    """Returns the headers and the extension."""
    whole = scratch / "cistern_torch.cpp"  # one file: PyTorch's headers are read once
    out = scratch / f"{torch.name}.so"
    object_file, read = out.with_suffix(".o"), out.with_suffix(".d")
    include = torch / "include"
    run(*compiler, "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-DNDEBUG", "-D_GLIBCXX_USE_CXX11_ABI=1",
        f"-ffile-prefix-map={TOP}=cistern", f"-ffile-prefix-map={include}=torch",  # the last one comes first
        f"-I{TOP / 'include'}", f"-I{TOP}", "-isystem", include,
        "-isystem", include / "torch/csrc/api/include", "-MD", "-MF", read, "-c", whole, "-o", object_file)
    # All names are looked up as it is loaded, so that one that is missing is found before it is used.
    run(*compiler, "-shared", object_file, "-o", out, "-s", "-Wl,-z,defs,-z,now,--build-id=none",
        "-Wl,-soname,cistern_torch.so", "-Wl,-rpath,$ORIGIN/../../_lib", f"-L{torch / 'lib'}",
        "-lc10", "-lc10_cuda", "-ltorch_cpu", library, "-lpthread", "-ldl")
    return headers_read(read, include), out.read_bytes()


def main(releases, library, made, *compiler):
    folder = pathlib.Path(made)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    torches = sorted(pathlib.Path(releases).resolve().iterdir(), key=lambda path: tuple(map(int, path.name.split("."))))
    table = {}
    scratch = folder.parent / "scratch"  # always the same: ccache keeps an object by the name of its source
    scratch.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", 2))) as pool:
        sources = [path for each in ("torch", "sharing") for path in sorted((TOP / "interop" / each).glob("*.cpp"))]
        (scratch / "cistern_torch.cpp").write_text("".join(f'#include "{path}"\n' for path in sources))
        compiled = pool.map(lambda torch: compile_for(torch, library, scratch, compiler), torches)
        for torch, (headers, extension) in zip(torches, compiled):
            name = f"cistern_torch-{torch.name}.so"
            (folder / name).write_bytes(extension)
            (folder / name).chmod(0o755)
            release = table.setdefault(".".join(torch.name.split(".")[:2]), {"headers": headers, "digests": {}})
            if release["headers"] != headers:
                sys.exit(f"{torch.name} reads other headers than an earlier patch release")
            release["digests"][_digest.of_files(torch / "include", headers)] = {"name": name, "bytes": len(extension)}
    (folder / "table.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
