"""What README.md and docs/*.md name in code font exists outside of the pages.

Each `span` is looked at by its shape:

    a path                  is a tracked file or folder, or the end of one: `heap/heap.cpp`
    --flag, CISTERN_X       is a whole word of the code
    name:value              has a name and, if that is a word, a value of the option table
    a_b, a-b, a(), A::b     has words of the code, or of a test; one with `cistern` in it, of the code

The code is what is built, without tests and comments, and the files of CMake. What stands between fences is left out,
because tests/docs runs it, and so are lines of other programs. OTHERS knows names of other projects by rule.
"""

import pathlib
import re

import sources

SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
FENCE = re.compile(r"^\s*(```|~~~)")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
KEBAB = re.compile(r"(?<![\w-])[a-z]\w*(?:-[a-z]\w*)+(?![\w-])")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
VARIABLE = re.compile(r"\bCISTERN_[A-Z0-9_]*[A-Z0-9]\b")
SETTING = re.compile(r"(?<![\w:.])([a-z]\w+):([\w.]+)")
NAME = re.compile(r"~?[A-Za-z_]\w*(?:(?:::|\.|->)~?\w+)*(?:\(.*\))?")
PATH = re.compile(r"(?:\./)?[\w.+-]+(?:/[\w.+-]+)*/?")
PLACEHOLDER = re.compile(r"[\s*…<=]|[A-Z]{3}-|\bNAME_")
FILE = re.compile(r"\.(?:hpp|cpp|h|c|cuh?|md|py|sh|cmake|txt|js|css)$")
ROW = re.compile(r'^    \{"(\w+)", "(\w*)"', re.M)  # of the table: Cistern's name, PyTorch's

NO_TEXT = {".gz", ".pickle", ".svg", ".map", ".md"}
SELF = {"cmake/lint/codefont.py", "tests/lint/lint_test.py"}
OPTIONS = "allocator/base/option_table.cpp"

# Names that another project has given.
OTHERS = re.compile("|".join([
    r"(?:cu|cuda|nv|nvtx|nccl|cublas|cusparse|cusolver|cudnn|cudss)[A-Z]\w*|cuda_\w+",  # NVIDIA
    r"(?:hip|hsa|rocblas|miopen)[A-Z]\w*|amdgpu_\w+|Heap::RemoveStream|emulation",  # AMD, and a folder of ROCm
    r"(?:CUDA|NVIDIA|NCCL|CUBLAS|CUBLASLT|CUDNN|CUDSS|HIP|HSA|ROCM|AMDKFD|NVTX)_\w+",
    r"(?:PYTORCH|TORCH|TMS|XLA|NUMBA)_\w+|use_memory_pool|wake_up|thread_free",  # frameworks, vLLM, mimalloc
    r"(?:torch|c10|numba|cupy|rmm|numpy|std|thrust|cub|cuda|sys)(?:::|\.|->)[\w.:>-]+(?:\(.*\))?",
    r"test_\w+|(?:a?synchronous|async)_resource|unw_\w+",  # PyTorch's tests, CCCL, libunwind
    r"(?:LD|XDG|CMAKE|CPACK|BUILD)_\w+|pidfd_getfd|lib\w+\.(?:so|a)\b.*",  # the system and CMake
]))
# Files that a machine, an installation or another project has.
ELSEWHERE = re.compile(r"[/~$-]|(?:build|include|lib|bin|share|c10|ATen|torch|crt|nvidia|test)/|.*\.(?:deb|io|org)$")
PROGRAMS = set("apt c++ cc ccache cmake cpack ctest git grep kill ldd nvcc pip pkg-config rm setpriv source strings su sudo "
               "taskset torchrun ulimit valgrind xargs zstd".split())


def spans(top, path):
    """(line, text) of each span of code outside code fences."""
    inside, kept = False, []
    for _, text in sources.lines(top, path):
        fence = FENCE.match(text)
        inside ^= bool(fence)
        kept.append("" if inside or fence or text.startswith("    ") else text)
    page = "\n".join(kept)
    for found in SPAN.finditer(page):
        if "\n\n" not in found[2]:  # a span ends in its paragraph
            yield page.count("\n", 0, found.start()) + 1, " ".join(found[2].split())


class Known:
    """The words, flags, options and files outside the pages."""

    def __init__(self, top):
        paths = [str(path) for path in sources.files(top)]
        folders = {path.rsplit("/", n)[0] for path in paths for n in range(1, path.count("/") + 1)}
        self.places = {place[at:] for place in folders | set(paths)
                       for at in [0, *(slash.end() for slash in re.finditer("/", place))]}
        self.code, self.words, self.options = set(), {path.stem for path in map(pathlib.PurePosixPath, paths)}, {}
        for path in sources.files(top):
            if path.suffix in NO_TEXT or str(path) in SELF or path.parts[0] == "docs":
                continue
            text = (top / path).read_text(encoding="utf-8", errors="replace")
            if path.suffix in sources.CODE:
                text = COMMENT.sub("", text)
            words = {word for shape in (WORD, KEBAB, FLAG) for word in shape.findall(text)}
            self.words |= words
            if path.parts[0] != "tests" or path.suffix in (".txt", ".cmake"):
                self.code |= words
            if str(path) == OPTIONS:
                self.options = {name: row for row in re.split(r"(?=^    \{\")", text, flags=re.M)
                                for name in (ROW.match(row) or re.match("()()", row)).groups() if name}

    def has_word(self, word):
        made = re.match(r"(?:handles|bench)_", word)  # CMake makes these names of a library's, or a file's
        if OTHERS.fullmatch(word) or made and word[made.end():] in self.words:
            return True
        return word in (self.code if "cistern" in word.lower() else self.words)

    def wrong_setting(self, name, value):
        if name not in self.options:
            return f"no option is called {name}"
        row = self.options[name]
        words = re.findall(r'"(\w+)"', row) + ["off"] * ("DivisionsRule" in row)
        words += ["true", "false", "True", "False"] * ("SwitchRule" in row)
        return None if not value.isalpha() or value in words else f"{name} does not take {value}"


def missing(known, text):
    """What of a span exists nowhere."""
    if OTHERS.fullmatch(text) or text.split()[0] in PROGRAMS:
        return
    yield from (f"nothing takes {flag}" for flag in FLAG.findall(text) if flag not in known.code)
    yield from (f"nothing reads {name}" for name in VARIABLE.findall(text) if name not in known.code)
    yield from wrong_settings(known, text)
    if text not in known.places and not PLACEHOLDER.search(text) and not ELSEWHERE.match(text):
        yield from missing_names(known, text)


def wrong_settings(known, text):
    conf = re.match(r"CISTERN_CONF=|.*--conf (?!name:value)", text)
    for name, value in SETTING.findall(text) if conf or re.fullmatch(r"\w+:\w[\w.]*", text) else ():
        # A word of the code before a colon: a kind of program and its seed, an allocator and its device.
        if conf or name in known.options or name not in known.code:
            wrong = known.wrong_setting(name, value)
            if wrong:
                yield wrong


def missing_names(known, text):
    if FILE.search(text) and PATH.fullmatch(text):
        yield "no such file"
    elif "/" in text and PATH.fullmatch(text):
        if text.removeprefix("./").rstrip("/") not in known.places and text.partition("/")[0] not in known.words:
            yield "no such folder"
    elif NAME.fullmatch(text):
        yield from (f"the code has no {word}" for word in WORD.findall(re.sub(r"\(.*\)", "", text))
                    if not known.has_word(word) and not VARIABLE.fullmatch(word))
    elif KEBAB.fullmatch(text) and not known.has_word(text):
        yield f"the code has no {text}"


def findings(top):
    known = Known(top)
    found = []
    for path in sources.files(top, {".md"}):
        if str(path) == "README.md" or str(path.parent) == "docs":
            found += [f"{path}:{number}: `{text}`: {what}"
                      for number, text in spans(top, path) for what in missing(known, text)]
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
