"""A vendor conditional stands in the alias headers only; vendor headers stay behind them.

Device code is in the vendor's own language, so the .cu files of tests and benchmarks may include
what they need; so may the tests that call a vendor's runtime beside the backend, what times its calls,
the files that each bind one vendor library, and what stands between a program and its driver, or is one in a test;
and what Cistern is for who has the vendor's own C++ library.
"""

import re

import sources

CONDITIONALS = re.compile(r"allocator/device/vendor/(?:alias|runtime_functions)\.hpp|interop/preload/driver/vendor_names\.hpp"
                          r"|(?:tests|bench)/.*\.cuh?|include/cistern-cccl/.*|tests/cccl/.*"
                          r"|tests/gpu/cuda/loaded/signatures\.cpp|tests/torch_releases/fake_runtime/.*")
HEADERS = re.compile(r"allocator/device/vendor/[^/]+\.hpp|(?:tests|bench)/.*\.cuh?"
                     r"|interop/preload/.*|tests/preload/.*|tests/support/vendor_work/.*|tests/history/nvtx/.*|bench/meter/.*|tests/gpu/cuda/.*|tests/hip/.*"
                     r"|handles/(?:cuda|hip)/.*|tests/handles/(?:cuda|cudss)/.*|bench/handles\.cpp"
                     r"|include/cistern-cccl/.*|tests/cccl/.*|tests/torch_releases/fake_runtime/.*")
CONDITIONAL = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*(?:CUDA|HIP|__NVCC__)")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"](?:cu(?:da|blas|dnn|sparse|solver|dss|rand)'
                     r"|hip|roc|miopen|rmm/|nv)")


def findings(top):
    found = []
    for path in sources.files(top, sources.CODE):
        for number, text in sources.lines(top, path):
            if CONDITIONAL.match(text) and not CONDITIONALS.fullmatch(str(path)):
                found.append(f"{path}:{number}: a vendor conditional outside the alias headers")
            if INCLUDE.match(text) and not HEADERS.fullmatch(str(path)):
                found.append(f"{path}:{number}: a vendor header outside allocator/device/vendor")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
