"""A source file over 500 lines is two ideas."""

import sources

LIMIT = 500


def findings(top):
    found = []
    for path in sources.files(top, sources.CODE | {".js", ".css", ".py", ".cmake"}):
        count = sum(1 for _ in sources.lines(top, path))
        if count > LIMIT:
            found.append(f"{path}:{LIMIT + 1}: {count} lines; {LIMIT} are the most: find the seam")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
