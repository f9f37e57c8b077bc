#!/usr/bin/env python3
"""Builds the documentation as web pages in target/site, with mdBook.

The README is the first page. The table of contents is docs/README.md: its headings are the parts, its links
the chapters, in that order. A page of docs/ that is not linked there is an error, and so is a dead link on
the finished site. A link to a file of the repository that is not a page leads to the repository on the web.

mdBook is built from crates.io into target/tools: about 80 s on one core, once. Unoptimised, because it runs
for a second.
"""

import html.parser
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.parse
from pathlib import Path

MDBOOK = "0.5.4"
ROOT = Path(__file__).parent.parent
TOOLS, SOURCE, SITE = (ROOT / "target" / name for name in ("tools", "site-source", "site"))
REPOSITORY = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
CONTENTS = "docs/README.md"
DECISIONS = "docs/decisions"
BOOK = """\
[book]
title = "robot-net"
language = "en"
src = "."

[build]
build-dir = "{site}"
create-missing = false

[output.html]
git-repository-url = "{repository}"

[output.html.playground]
runnable = false

[output.html.print]
enable = false
"""
LINK = re.compile(r"(\]\(|^\[[^\]^]+\]: )([^)\s]+)", re.MULTILINE)
#: Blocks of code, and code within a line.
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def install() -> str:
    """The path of mdBook in the pinned version."""
    mdbook = TOOLS / "bin" / "mdbook"
    if not mdbook.exists() or MDBOOK not in subprocess.run([mdbook, "--version"], stdout=-1, text=True).stdout:
        options = "--locked --debug --config profile.dev.debug=0 --no-default-features --features search"
        command = f"cargo install mdbook --version ={MDBOOK} {options} --root {TOOLS}"
        subprocess.run(command.split(), check=True)
    return str(mdbook)


def resolve(page: str, link: str) -> str:
    """The target of a page's link, relative to the root of the repository."""
    return os.path.normpath(os.path.join(os.path.dirname(page), link))


def title(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def contents() -> tuple[str, list[str]]:
    """mdBook's SUMMARY.md, and the pages in it."""
    decisions = sorted(str(path.relative_to(ROOT)) for path in (ROOT / DECISIONS).glob("*.md"))
    pages, lines = ["README.md", CONTENTS], ["# Summary", f"[{title('README.md')}](README.md)", f"[Contents]({CONTENTS})"]
    for line in (ROOT / CONTENTS).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            lines.append(f"\n# {line[3:]}\n")
        for text, link in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", line):
            page = resolve(CONTENTS, link)
            if page == DECISIONS:
                lines.append(f"- [{text}]({page}/README.md)")
                lines += [f"  - [{title(decision)}]({decision})" for decision in decisions]
                pages += decisions
            elif page not in pages:
                lines.append(f"- [{text[0].upper()}{text[1:]}]({page})")
                pages.append(page)
    return "\n".join(lines), pages


def with_links(page: str, text: str, pages: list[str]) -> str:
    """The page with links to files outside of the site redirected to the repository. Copies its images."""

    def target(match: re.Match[str]) -> str:
        before, link = match.groups()
        file, _, fragment = link.partition("#")
        path = resolve(page, file)
        if path == DECISIONS:
            return f"{before}{os.path.join(file, 'index.md')}"
        if path in pages:
            # The name that mdBook gives it.
            return f"{before}{link.replace('README.md', 'index.md')}"
        if not file or "://" in file:
            return match[0]
        if path.endswith((".png", ".svg")):
            (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, SOURCE / path)
            return match[0]
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{before}{REPOSITORY}/{kind}/main/{path}" + (f"#{fragment}" if fragment else "")

    # Code may contain link syntax: blocks and spans of code are kept unchanged.
    pieces = CODE.split(text)
    return "".join(piece if at % 2 else LINK.sub(target, piece) for at, piece in enumerate(pieces))


class Links(html.parser.HTMLParser):
    """The links of a page of the site, and its link targets."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.places.add(value)


def dead_links() -> list[str]:
    pages = {page: Links(page) for page in SITE.rglob("*.html")}
    # It is served for any missing address, and its links are relative to the root.
    del pages[SITE / "404.html"]
    dead = []
    for page, found in pages.items():
        for link in found.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = Path(os.path.normpath(page.parent / urllib.parse.unquote(parts.path))) if parts.path else page
            path = path / "index.html" if path.is_dir() else path
            place = urllib.parse.unquote(parts.fragment)
            if not path.exists() or place and path in pages and place not in pages[path].places:
                dead.append(f"{page.relative_to(SITE)}: {link}")
    return dead


def main() -> None:
    mdbook = install()
    for folder in (SOURCE, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    summary, pages = contents()
    orphans = [p for p in sorted((ROOT / "docs").rglob("*.md")) if str(p.relative_to(ROOT)) not in pages]
    if orphans:
        sys.exit(f"site: {CONTENTS} does not reach {', '.join(str(p.relative_to(ROOT)) for p in orphans)}")
    for page in pages:
        (SOURCE / page).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / page).write_text(with_links(page, (ROOT / page).read_text(encoding="utf-8"), pages), encoding="utf-8")
    chapters = re.findall(rf"^  - (\[.*\]\(){DECISIONS}/(.*\))$", summary, re.MULTILINE)
    index = "\n".join(["# Decisions\n", *(f"- {text}{file}" for text, file in chapters), ""])
    (SOURCE / DECISIONS / "README.md").write_text(index, encoding="utf-8")
    (SOURCE / "SUMMARY.md").write_text(summary, encoding="utf-8")
    (SOURCE / "book.toml").write_text(BOOK.format(site=SITE, repository=REPOSITORY))
    subprocess.run([mdbook, "build", str(SOURCE)], check=True)
    dead = dead_links()
    if dead:
        sys.exit("site: broken links:\n" + "\n".join(dead))
    print(f"site: {len(pages)} pages in {SITE}, all links are valid")


if __name__ == "__main__":
    main()
