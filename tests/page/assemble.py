"""Puts a model into the page, as `cistern report` does.

assemble.py STORY OUT.html      a made-up story of stories.py
assemble.py MODEL.json OUT.html"""

import base64
import functools
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = pathlib.Path("/usr/share/nodejs")
D3 = LIBRARIES / "d3/dist/d3.min.js"
PAKO = LIBRARIES / "pako/dist/pako_inflate.min.js"
MARKER = "<!-- cistern:data -->"


def missing():
    """What the page is drawn with and is not installed; empty if nothing."""
    return next((package for package, path in {"node-d3": D3, "node-pako": PAKO}.items() if not path.exists()),
                "")


@functools.cache
def template():
    """The page without data."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "page.html"
        subprocess.run([
            "cmake", f"-DD3={D3}", f"-DPAKO={PAKO}", f"-DOUT={out}", "-P",
            TOP / "interop/report/page/assemble.cmake"
        ],
                       check=True)
        return out.read_text()


def page(model):
    packed = gzip.compress(json.dumps(model, separators=(",", ":")).encode(), 6)
    return template().replace(MARKER, base64.b64encode(packed).decode())


if __name__ == "__main__":
    source, out = sys.argv[1:]
    if source.endswith(".json"):
        given = json.loads(pathlib.Path(source).read_text())
    else:
        import stories
        given = stories.named(source)
    pathlib.Path(out).write_text(page(given))
