"""The networks and losses of `tandem segment` in plain PyTorch, written from their description, to compare ours with."""

import torch
from torch import nn
from torch.nn import functional

BLOCKS = {14: (1, 1, 1, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}


def conv(inputs, outputs, kernel=1, stride=1, rate=1, bias=False):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=rate * (kernel // 2), dilation=rate, bias=bias)


class Block(nn.Module):
    def __init__(self, inputs, width, stride, rate, bottleneck):
        super().__init__()
        self.bottleneck, outputs = bottleneck, 4 * width if bottleneck else width
        if bottleneck:
            self.conv1, self.conv2 = conv(inputs, width, stride=stride), conv(width, width, 3, rate=rate)
            self.conv3, self.bn3 = conv(width, outputs), nn.BatchNorm2d(outputs)
        else:
            self.conv1, self.conv2 = conv(inputs, width, 3, stride), conv(width, width, 3, rate=rate)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, stride=stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        if self.bottleneck:
            y = self.bn3(self.conv3(y.relu_()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu_()


class Trunk(nn.Module):
    """Output stride 8: the third stage has rate 2, the fourth 4, 8, 16."""

    def __init__(self, layers, width):
        super().__init__()
        self.conv1, self.bn1 = conv(3, width, 7, 2), nn.BatchNorm2d(width)
        bottleneck, self.channels = layers not in (18, 34), width
        for stage, (count, stride, rates) in enumerate(zip(BLOCKS[layers], (1, 2, 1, 1), ([1], [1], [2], [4, 8, 16]))):
            blocks = []
            for i in range(count):
                blocks.append(Block(self.channels, width << stage, stride if i == 0 else 1, rates[min(i, len(rates) - 1)], bottleneck))
                self.channels = (width << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
            if stage == 0:
                self.low_channels = self.channels

    def forward(self, x):
        x = functional.max_pool2d(self.bn1(self.conv1(x)).relu_(), 3, 2, 1, ceil_mode=True)
        low = self.layer1(x)
        return low, self.layer4(self.layer3(self.layer2(low)))


class Aspp(nn.Module):
    def __init__(self, inputs, outputs, rates, relu):
        super().__init__()
        kernels = [(1, 1), *((3, rate) for rate in rates)]
        self.convs = nn.ModuleList(nn.Sequential(conv(inputs, outputs, kernel, rate=rate), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
                                   for kernel, rate in kernels)
        self.convs.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(inputs, outputs), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)))
        self.project = nn.Sequential(conv(5 * outputs, outputs), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True) if relu else nn.Identity())

    def forward(self, x):
        parts = [branch(x) for branch in self.convs]
        parts[-1] = resized(parts[-1], x)
        return self.project(torch.cat(parts, 1))


def resized(x, other):
    return functional.interpolate(x, other.shape[2:], mode="bilinear", align_corners=True)


class V3Plus(nn.Module):
    def __init__(self, trunk, width, classes):
        super().__init__()
        channels, low = 4 * width, 48 * width // 64

        def step(inputs, outputs, kernel):
            return nn.Sequential(conv(inputs, outputs, kernel), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
        self.add_module("0", Aspp(trunk.channels, channels, (6, 12, 18), True))
        self.low, self.first, self.second = step(trunk.low_channels, low, 1), step(channels + low, channels, 3), step(channels, channels, 3)
        self.last = conv(channels, classes, bias=True)

    def forward(self, low, high):
        both = torch.cat([self.low(low), resized(getattr(self, "0")(high), low)], 1)
        return self.last(self.second(self.first(both)))


class V2(nn.Module):
    def __init__(self, trunk, classes):
        super().__init__()
        self.convs = nn.ModuleList(conv(trunk.channels, classes, 3, rate=rate, bias=True) for rate in (6, 12, 18, 24))

    def forward(self, low, high):
        return sum(branch(high) for branch in self.convs)


class ToClasses(nn.Module):
    def __init__(self, trunk, classes):
        super().__init__()
        self.add_module("0", Aspp(trunk.channels, classes, (12, 18, 24), False))

    def forward(self, low, high):
        return getattr(self, "0")(high)


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


class Deeplab(nn.Module):
    def __init__(self, head, classes, layers=14, width=8, lorm=True):
        super().__init__()
        self.backbone = Trunk(layers, width)
        self.classifier = {"aspp": lambda: ToClasses(self.backbone, classes), "deeplabv3plus": lambda: V3Plus(self.backbone, width, classes),
                           "deeplabv2": lambda: V2(self.backbone, classes)}[head]()
        if lorm:
            self.lorm = Lorm(self.backbone.channels)

    def forward(self, images, pseudo=None):
        low, high = self.backbone(images)
        logits = resized(self.classifier(low, high), images)
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
