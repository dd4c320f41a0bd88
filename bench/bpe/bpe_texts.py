"""Collects text files of this machine: FOLDER/train.txt for training, and FOLDER/texts.txt, without duplicates of it, to encode."""

import pathlib
import random
import sysconfig

TRAIN_CHARACTERS, TEST_CHARACTERS, TEXT_CHARACTERS = 10_000_000, 4_000_000, 2000
FOLDERS = [pathlib.Path(sysconfig.get_path("stdlib")), pathlib.Path("/usr/share/doc"), pathlib.Path("/usr/share/common-licenses"),
           pathlib.Path("/usr/share/perl")]
ENDINGS = {"", ".html", ".md", ".pod", ".py", ".rst", ".txt"}


def texts(chance: random.Random):
    """Texts of a few pages each, from files in random order. Duplicate paragraphs, such as licences, are dropped."""
    paths = sorted(path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())
    chance.shuffle(paths)
    seen, text = set(), ""
    for path in paths:
        try:
            paragraphs = path.read_text().replace("\x1e", "").split("\n\n")
        except (UnicodeDecodeError, PermissionError):
            continue
        for paragraph in dict.fromkeys(paragraphs):
            if paragraph not in seen:
                seen.add(paragraph)
                text += paragraph + "\n\n"
            if len(text) > TEXT_CHARACTERS:
                yield text
                text = ""


def gather(folder: pathlib.Path) -> None:
    folder.mkdir()
    source = texts(random.Random(1))
    for name, num_characters in (("texts.txt", TEST_CHARACTERS), ("train.txt", TRAIN_CHARACTERS)):
        taken, size = [], 0
        for text in source:
            taken.append(text)
            size += len(text)
            if size >= num_characters:
                break
        (folder / name).write_bytes("\x1e".join(taken).encode())
