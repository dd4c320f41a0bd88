"""The peers of bpe/main.cpp: tiktoken and tokenizers, with the same vocabulary. Usage: bpe_peers.py FOLDER, after ours has run."""

import array
import json
import os
import pathlib
import sys
import time

os.environ |= {"RAYON_NUM_THREADS": "1"}  # before it is read
import tiktoken
import tokenizers

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""  # as tiktoken writes GPT-2's
VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [byte for byte in range(256) if byte not in VISIBLE]
BYTE_OF = {chr(byte): byte for byte in VISIBLE} | {chr(256 + i): byte for i, byte in enumerate(HIDDEN)}
END = "<|endoftext|>"


def make_tiktoken(folder: pathlib.Path) -> tiktoken.Encoding:
    vocab = json.loads((folder / "vocab.json").read_text())
    end = vocab.pop(END)
    ranks = {bytes(BYTE_OF[char] for char in token): rank for token, rank in vocab.items()}
    return tiktoken.Encoding("ours", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: end})


def timed(encode, texts: list[str]) -> tuple[float, list[int]]:
    begin = time.perf_counter()
    ids = encode(texts)
    return time.perf_counter() - begin, [token for one in ids for token in one]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    texts = (folder / "texts.txt").read_bytes().decode().split("\x1e")
    ours = array.array("i", (folder / "ids.bin").read_bytes()).tolist()
    tik, hugging = make_tiktoken(folder), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tiktoken_s, one = timed(lambda texts: [tik.encode_ordinary(text) for text in texts], texts)
    tokenizers_s, other = timed(lambda texts: [encoding.ids for encoding in hugging.encode_batch_fast(texts)], texts)
    different = max(len(ours) != len(ids) or sum(map(int.__ne__, ours, ids)) for ids in (one, other))
    print(json.dumps({"seconds": {"tiktoken": tiktoken_s, "tokenizers": tokenizers_s}, "different": different}))


if __name__ == "__main__":
    main()
