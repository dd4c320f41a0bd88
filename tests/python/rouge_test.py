"""ROUGE and stems of Tandem, against the Python packages rouge-score and NLTK on the same texts."""

import functools
import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import unittest

SCORE_TEXT = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "score_text"
TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
SUFFIXES = """s es ies sses ed ing ied eed y e ll at bl iz ational tional enci anci izer bli alli entli eli ousli ization ation ator
    alism iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible
    ant ement ment ent ion sion tion ou ism ate iti ous ive ize""".split()
ODD = ["\n", "\n\n", "\r\n", "\t", "é", "naïve", "İstanbul", "\u212aelvin", "ſ", "ß", "摘要", "🙂", "10", "3.14", "x2", "don't", "-", "--",
       "A.B.C", "the", "the", "the", "a", "a", "", "\u0130", "K\u0307", "\u0000", "\ufffd"]


@functools.cache
def texts():
    """Of what every Python has: the sources of its standard library."""
    return [path.read_text(errors="ignore") for path in sorted(pathlib.Path(os.__file__).parent.glob("*.py"))]


def run(mode, text):
    return subprocess.run([SCORE_TEXT, mode], input=text.encode(), stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()


def random_pairs(count):
    """Two thirds share a passage, so that every score is seen; some have lines, odd characters, one word over and over, or none."""
    draw = random.Random(20250101)
    words = re.findall(r"\S+", "\n".join(texts()))
    passage = lambda: words[(at := draw.randrange(len(words) - 25)):at + draw.randrange(25)]
    for i in range(count):
        reference = passage()
        some = reference[draw.randint(0, 5):][:draw.randint(0, 25)]
        prediction = draw.choice([some, draw.sample(some, len(some)), passage()])
        for text in (reference, prediction):
            for _ in range(draw.randrange(6)):
                text.insert(draw.randint(0, len(text)), draw.choice([*ODD, *reference]))
        if i % 10 == 0:
            prediction += reference[:3] * 20
        yield draw.choice([" ", " ", "\n", ", "]).join(reference), draw.choice([" ", " ", "\n"]).join(prediction)


class Rouge(unittest.TestCase):
    def setUp(self):
        if any(importlib.util.find_spec(name) is None for name in ("rouge_score", "nltk")):
            self.skipTest(f"{sys.executable} has no rouge-score")

    def expect_equal_scores(self, pairs, stems):
        from rouge_score.rouge_scorer import RougeScorer
        scorer = RougeScorer(TYPES, use_stemmer=stems)
        if stems:
            scorer._tokenizer._stemmer.stem = functools.cache(scorer._tokenizer._stemmer.stem)  # or this takes minutes
        ours = json.loads(run("porter" if stems else "none", json.dumps(pairs)))
        self.assertEqual(len(ours["scores"]), len(pairs))
        self.assertGreater(ours["mean"][5], 0.1)
        for pair, numbers in zip(pairs, ours["scores"]):
            expected = [number for score in scorer.score(*pair).values() for number in score]
            difference = max(abs(one - other) for one, other in zip(numbers, expected, strict=True))
            self.assertLessEqual(difference, 1e-9, pair)
        return ours

    def test_scores_are_those_of_rouge_score_for_ten_thousand_pairs(self):
        self.expect_equal_scores(list(random_pairs(10_000)), stems=True)

    def test_scores_without_stemming_and_their_intervals(self):
        import numpy
        from rouge_score import scoring
        ours = self.expect_equal_scores(list(random_pairs(1_000)), stems=False)
        peer = scoring.BootstrapAggregator()
        for numbers in ours["scores"]:
            peer.add_scores({name: scoring.Score(*numbers[3 * i:3 * i + 3]) for i, name in enumerate(TYPES)})
        numpy.random.seed(1)
        theirs = peer.aggregate().values()
        for i, bounds in enumerate(theirs):
            for bound, expected in zip(("low", "median", "high"), bounds):
                numpy.testing.assert_allclose(ours[bound][3 * i:3 * i + 3], expected, atol=0.005)
        numpy.testing.assert_allclose(ours["mean"], numpy.mean(ours["scores"], axis=0), atol=1e-12)

    def test_stems_are_those_of_nltk(self):
        from nltk.stem.porter import PorterStemmer
        draw = random.Random(7)
        words = set(re.findall("[a-z0-9]+", "\n".join(texts()).lower()))
        for _ in range(30_000):
            beginning = "".join(draw.choices("aeioubcdlnrstwxyz1", k=draw.randint(0, 5)))
            words.add(beginning + "".join(draw.choices(SUFFIXES, k=draw.randint(1, 3))))
        words = sorted(words)
        self.assertGreater(len(words), 30_000)
        stems = run("stem", "\n".join(words)).splitlines()
        stemmer = PorterStemmer()
        wrong = [(word, ours) for word, ours in zip(words, stems, strict=True) if stemmer.stem(word) != ours]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
