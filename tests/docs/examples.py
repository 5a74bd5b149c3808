"""Writes the C++ programs that stand in the project's pages (```cpp blocks with a main) to files."""

import pathlib
import re
import sys


def examples(page):
    return [b for b in re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S) if "int main(" in b]


if __name__ == "__main__":
    target, *pages = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for page in pages:
        for number, code in enumerate(examples(page.read_text()), 1):
            file = target / f"{page.stem.lower()}_{number}.cpp"
            if not file.exists() or file.read_text() != code:
                file.write_text(code)
            print(file)
