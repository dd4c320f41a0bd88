"""The peer of rouge/main.cpp: the package rouge-score. Usage: rouge_score_peer.py --pairs pairs.csv."""

import argparse
import csv
import json
import time

from rouge_score.rouge_scorer import RougeScorer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", default="pairs.csv")
    with open(parser.parse_args().pairs, newline="") as file:
        pairs = [(row["reference"], row["prediction"]) for row in csv.DictReader(file)]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    begin = time.perf_counter()
    scores = [scorer.score(*pair) for pair in pairs]
    seconds = time.perf_counter() - begin
    numbers = [number for kinds in scores for score in kinds.values() for number in score]
    print(json.dumps({"us": 1e6 * seconds / len(pairs), "scores": numbers}))


if __name__ == "__main__":
    main()
