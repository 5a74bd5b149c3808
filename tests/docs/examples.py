"""Writes the programs that stand in the project's pages (```cpp, ```c and ```cuda blocks with a main)
to files. The last run on a GPU only."""

import pathlib
import re
import sys


def examples(page, language):
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    return [block for block in blocks if "int main(" in block]


if __name__ == "__main__":
    target, *pages = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for page in pages:
        text = page.read_text()
        for language, suffix in (("cpp", "cpp"), ("c", "c"), ("cuda", "cu")):
            for number, code in enumerate(examples(text, language), 1):
                file = target / f"{page.stem.lower()}_{number}.{suffix}"
                if not file.exists() or file.read_text() != code:
                    file.write_text(code)
                print(file)
