"""The training network and losses of `tandem segment` in plain PyTorch, written from their description, to compare ours with."""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import load_segment  # noqa: E402
from load_segment import conv, resized  # noqa: E402


class Lorm(nn.Module):
    """The whole attention matrix at once."""

    def __init__(self, channels):
        super().__init__()
        self.query, self.key = conv(channels, channels, bias=True), conv(channels, channels, bias=True)
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(self, x, pseudo):
        known = torch.where(pseudo == 255, 0, pseudo).unsqueeze(1).to(x.dtype)
        mask = (resized(known, x) > 0).flatten(2).mT
        q, k, v = (part.flatten(2).mT for part in (self.query(x), self.key(x), x))
        attention = (q @ k.mT / (q.norm(dim=2, keepdim=True) * k.norm(dim=2, keepdim=True).mT)).softmax(-1)
        squares = (v - self.gamma * mask * (attention @ v)) ** 2
        return squares.sum(), squares.count_nonzero()


class Deeplab(load_segment.Deeplab):
    """With LoRM. There is no dropout, whose random numbers would differ."""

    def __init__(self, head, classes, layers=14, width=8, lorm=True, **others):
        super().__init__(head, classes, layers, width, **others)
        if lorm:
            self.lorm = Lorm(self.backbone.channels)

    def forward(self, images, pseudo=None):
        low, high = self.backbone(images)
        logits = resized(self.classifier(low, high), images, self.aligned)
        return logits, None if pseudo is None else self.lorm(high, pseudo)


def entropy(logits, distances):
    p = logits.softmax(1)
    return -((p * logits.log_softmax(1)).sum(1) * distances / 255).sum(), (distances > 0).sum()


def cross_entropy(logits, labels, weights=None, smoothing=0.0, fraction=1.0):
    """Sum and count; of the labelled pixels, the hardest fraction."""
    labels = labels.long()
    each = functional.cross_entropy(logits, labels, weights, ignore_index=255, label_smoothing=smoothing, reduction="none")
    known = labels != 255
    weight = torch.ones_like(each) if weights is None else weights[labels * known]
    chosen = each[known].topk(-(-int(known.sum() * fraction * 1000) // 1000)).indices if fraction < 1 else slice(None)
    return each[known][chosen].sum(), weight[known][chosen].sum()


def dice(logits, labels):
    known, p, losses = labels != 255, logits.softmax(1), []
    for number in labels[known].unique().tolist():
        truth, found = labels[known] == number, p[:, number][known]
        losses.append(1 - (2 * (found * truth).sum() + 1e-6) / (found.sum() + truth.sum() + 1e-6))
    return sum(losses), torch.tensor(len(losses))
