"""Shared by the tests of the pages in docs/: broken links."""

import pathlib
import re


def lost_targets(page: str, source: pathlib.Path) -> list[str]:
    """The sections, pages and files that a page refers to and that do not exist."""
    titles = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", page, re.M)}
    anchors = re.findall(r"\]\(#([^)]+)\)", page)
    files = re.findall(r"\]\(([\w./-]+\.md)", page) + re.findall(r"`((?:src|tests|tools)/[\w/.]+)`", page)
    return [f"#{anchor}" for anchor in anchors if anchor not in titles] + [
        file for file in files if not (source / "docs" / file).exists() and not (source / file).exists()]
