"""The peer of decode/main.cpp: the same weights and prompt under transformers.generate.

Usage: decode_transformers.py --folder FOLDER [--bf16]; with --make it writes a random GPT-2 of 124M parameters there.
"""

import argparse
import json
import time

import torch
import transformers

PROMPT = [464, 3290, 318, 257, 845, 922, 1545, 290]


def make(folder: str) -> None:
    """Larger than the usual initialization, so that the most probable token changes."""
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    with torch.no_grad():
        for parameter in model.transformer.h.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    model.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    transformers.logging.disable_progress_bar()
    if args.make:
        make(args.folder)
        return
    torch.set_num_threads(args.threads)
    model = transformers.GPT2LMHeadModel.from_pretrained(args.folder, dtype=torch.bfloat16 if args.bf16 else torch.float32).eval()
    ids = torch.tensor([PROMPT])
    settings = {"attention_mask": torch.ones_like(ids), "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    model.generate(ids, max_new_tokens=args.tokens, **settings)
    times = []
    for _ in range(args.runs):
        begin = time.perf_counter()
        tokens = model.generate(ids, max_new_tokens=args.tokens, **settings)[0, len(PROMPT):].tolist()
        times.append(1000 * (time.perf_counter() - begin) / args.tokens)
    print(json.dumps({"token_ms": times, "tokens": tokens}))


if __name__ == "__main__":
    main()
