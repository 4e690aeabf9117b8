#!/usr/bin/env python3
"""Checks that all links within a site lead to files and anchors that exist: check_links.py FOLDER"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(file.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if value and ((name == "href" and tag in ("a", "link")) or (name == "src" and tag in ("img", "script"))):
                self.links.append(value)


def main(folder):
    pages = {file.resolve(): Page(file) for file in sorted(folder.rglob("*.html"))}
    count, dead = 0, []
    for file, page in pages.items():
        if file.name == "404.html":  # its links are absolute
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            path = urllib.parse.unquote(parts.path)
            target = (file.parent / path).resolve() if path else file
            if target.is_dir():
                target /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                dead.append(f"{file.relative_to(folder)}: no file {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors and anchor != "__":
                dead.append(f"{file.relative_to(folder)}: no anchor {link}")
    for line in sorted(set(dead)):
        print(line, file=sys.stderr)
    print(f"{len(pages)} pages, {count} links, {len(set(dead))} dead")
    return 1 if dead or len(pages) < 20 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
