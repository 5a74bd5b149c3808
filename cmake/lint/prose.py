"""A sentence of the pages and of the public headers has at most 30 words, and begins with its subject.

The pages are all Markdown files. Code, tables, headings and drawings are no prose. A name in backticks is
one word. A semicolon ends a sentence: so it parts the entries of a list, too. A list of five or more behind
a colon does not count.
"""

import bisect
import re

import sources

MOST_WORDS = 30
INVERTED = re.compile(r"\W*(?:Who|Whom|Whose|What|Where|Of|(?:From|To|With) what)\b")

WORD = re.compile(r"\w[\w'-]*")
END = re.compile(r";\s+|[.?!][\")*_]*\s+(?=[\"(*_]*[A-Z0-9])")
LIST = re.compile(r": (?:[^,]*,){4}.*", re.S)
FENCE = re.compile(r"\s*(?:```|~~~)")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
NO_PROSE = re.compile(r"\s*[|#>]|\s*<!--|.*\S\s{3,}\S|.*[│┌└├─]|.*-{4}")
COMMENT = re.compile(r"(?:\s*(?://[/!]?<?|/\*\*?<?|\*(?!/))|(?P<code>.*)(?://[/!]|/\*\*)<) ?(?P<text>.*?)\s*(?:\*/)?$")


def comments(lines):
    """The comments of a header; one behind code begins a paragraph."""
    for number, text in lines:
        match = COMMENT.match(text)
        if not match or match["code"]:
            yield number, ""
        if match:
            yield number, match["text"]


def blocks(lines, code):
    """Paragraphs and entries of lists, each a list of (number, text). `code`: how far code is indented."""
    block, fenced, entry = [], False, False
    for number, text in lines:
        fence, item = FENCE.match(text), ITEM.match(text)
        fenced ^= bool(fence)
        is_code = fenced or fence or (text.startswith(" " * code) and not block and not entry and not item)
        no_prose = is_code or not text.strip() or NO_PROSE.match(text)
        if item or no_prose:
            yield block
            block = []
            entry = bool(item)
        if item or not no_prose:
            block.append((number, text[item.end():] if item else text))
    yield block


def blanked(text):
    """The text at the same places: code as one word, links as what they show."""
    text = re.sub(r"`[^`]*`", lambda code: "X" * len(code[0]), text)
    return re.sub(r"\]\([^)]*\)", lambda target: " " * len(target[0]), text).replace("[", " ")


def sentences(block):
    """(number, text, the same blanked) of each sentence."""
    starts, whole = [], ""
    for _, text in block:
        starts.append(len(whole))
        whole += text.strip() + " "
    plain = blanked(whole)
    begin = 0
    for end in [*(match.end() for match in END.finditer(plain)), len(plain)]:
        number = block[bisect.bisect_right(starts, begin) - 1][0] if block else 0
        yield number, whole[begin:end].strip(), plain[begin:end].strip()
        begin = end


def findings(top):
    found = []
    for path in sources.files(top, {".md", ".hpp", ".h"}):
        page = path.suffix == ".md"
        if not page and path.parts[0] != "include":
            continue
        lines = sources.lines(top, path)
        for block in blocks(lines, 4) if page else blocks(comments(lines), 3):
            for number, text, plain in sentences(block):
                words = len(WORD.findall(LIST.sub("", plain)))
                if words > MOST_WORDS:
                    found.append(f"{path}:{number}: {words} words; {MOST_WORDS} are the most: {text}")
                if INVERTED.match(plain) and not plain.endswith("?"):
                    found.append(f"{path}:{number}: begin with the subject: {text}")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
