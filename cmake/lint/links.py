"""Links between the pages of the documentation lead somewhere, headings included."""

import re

import sources

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
FENCE = re.compile(r"^\s*(```|~~~)")


def prose(top, path):
    """The numbered lines outside code fences."""
    inside = False
    for number, text in sources.lines(top, path):
        if FENCE.match(text):
            inside = not inside
        elif not inside:
            yield number, re.sub(r"`[^`]*`", lambda code: code[0].replace("](", "] ("), text)


def anchors(top, path):
    """The headings' anchors, made the way that code hosts make them."""
    names = (HEADING.match(text) for _, text in prose(top, path))
    return {re.sub(r"[^\w\- ]", "", name[1].lower()).replace(" ", "-") for name in names if name}


def broken(top, path, link):
    """What is wrong with a link on the page `path`, or None."""
    target, _, anchor = link.partition("#")
    place = (top / path.parent / target).resolve() if target else top / path
    if not place.exists():
        return "no such file"
    if anchor and place.suffix == ".md" and anchor not in anchors(place.parent, place.name):
        return "no such heading"
    return None


def findings(top):
    found = []
    for path in sources.files(top, {".md"}):
        for number, text in prose(top, path):
            for link in LINK.findall(text):
                wrong = None if re.match(r"[a-z]+:", link) else broken(top, path, link)
                if wrong:
                    found.append(f"{path}:{number}: link to {link}: {wrong}")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
