"""Copies a library without some of its functions: their names are others in the copy's table of names.

without_functions.py LIBRARY COPY FUNCTION…"""

import pathlib
import sys

library, copy, functions = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
content = pathlib.Path(library).read_bytes()
for function in functions:
    name = b"\0" + function.encode() + b"\0"
    if name not in content:
        sys.exit(f"{library} has no {function}")
    content = content.replace(name, b"\0x" + name[2:])
copy.parent.mkdir(parents=True, exist_ok=True)
copy.write_bytes(content)
copy.chmod(0o755)
