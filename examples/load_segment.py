"""Loads what `tandem segment export` has written into plain PyTorch. Needs torch, safetensors, numpy and Pillow.

    tandem segment export --from runs/latest --output segmenter
    python load_segment.py segmenter photo.jpg mask.png         writes the class of each pixel
"""

import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

BLOCKS = {14: (1, 1, 1, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def conv(inputs, outputs, kernel=1, stride=1, rate=1, bias=False):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=rate * (kernel // 2), dilation=rate, bias=bias)


def step(inputs, outputs, kernel=1, rate=1, relu=True):
    return nn.Sequential(conv(inputs, outputs, kernel, rate=rate), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True) if relu else nn.Identity())


def resized(x, other, align_corners=True):
    return functional.interpolate(x, other.shape[2:], mode="bilinear", align_corners=align_corners)


class Block(nn.Module):
    def __init__(self, inputs, width, stride, rate, bottleneck, stride_in):
        super().__init__()
        self.bottleneck, outputs = bottleneck, 4 * width if bottleneck else width
        if bottleneck:
            first, second = (stride, 1) if stride_in == "first" else (1, stride)
            self.conv1, self.conv2 = conv(inputs, width, stride=first), conv(width, width, 3, second, rate)
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
    """A ResNet. Beyond the output stride, a stage is dilated instead of strided; multi-grid: the blocks of a dilated last stage multiply its
    dilation by 1, 2 and 4."""

    def __init__(self, layers, width, stride_in, output_stride, multi_grid):
        super().__init__()
        self.conv1, self.bn1, self.ceil_mode = conv(3, width, 7, 2), nn.BatchNorm2d(width), stride_in == "first"
        bottleneck, self.channels, reached, rate = layers not in (18, 34), width, 4, 1
        for stage, count in enumerate(BLOCKS[layers]):
            dilated, before = stage > 0 and reached >= output_stride, rate
            stride = 2 if stage > 0 and not dilated else 1
            reached, rate = reached * stride, 2 * rate if dilated else rate
            blocks = []
            for i in range(count):
                own = before if i == 0 and stride_in == "second" and not multi_grid else rate  # as in torchvision
                own <<= min(i, 2) if multi_grid and stage == 3 and rate > 1 else 0
                blocks.append(Block(self.channels, width << stage, stride if i == 0 else 1, own, bottleneck, stride_in))
                self.channels = (width << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
            if stage == 0:
                self.low_channels = self.channels

    def forward(self, x):
        x = functional.max_pool2d(self.bn1(self.conv1(x)).relu_(), 3, 2, 1, ceil_mode=self.ceil_mode)
        low = self.layer1(x)
        return low, self.layer4(self.layer3(self.layer2(low)))


class Aspp(nn.Module):
    def __init__(self, inputs, outputs, rates, relu=True):
        super().__init__()
        branches = [step(inputs, outputs), *(step(inputs, outputs, 3, rate) for rate in rates)]
        self.convs = nn.ModuleList([*branches, nn.Sequential(nn.AdaptiveAvgPool2d(1), *step(inputs, outputs))])
        self.project = step(len(self.convs) * outputs, outputs, relu=relu)

    def forward(self, x):
        parts = [branch(x) for branch in self.convs]
        return self.project(torch.cat([*parts[:-1], resized(parts[-1], x)], 1))


class OfLastStage(nn.Sequential):
    def forward(self, low, high):
        return super().forward(high)


class V3Plus(nn.Module):
    def __init__(self, low_inputs, inputs, width, classes):
        super().__init__()
        channels, low = 4 * width, 3 * width // 4
        self.add_module("0", Aspp(inputs, channels, (6, 12, 18)))
        self.low, self.first, self.second = step(low_inputs, low), step(channels + low, channels, 3), step(channels, channels, 3)
        self.last = conv(channels, classes, bias=True)

    def forward(self, low, high):
        return self.last(self.second(self.first(torch.cat([self.low(low), resized(self.get_submodule("0")(high), low)], 1))))


class DilatedSum(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.convs = nn.ModuleList(conv(inputs, classes, 3, rate=rate, bias=True) for rate in (6, 12, 18, 24))

    def forward(self, low, high):
        return sum(branch(high) for branch in self.convs)


def make_head(kind, trunk, width, classes):
    inputs, channels = trunk.channels, 4 * width
    if kind == "aspp":
        return OfLastStage(Aspp(inputs, classes, (12, 18, 24), relu=False))
    if kind == "deeplabv3":
        return OfLastStage(Aspp(inputs, channels, (12, 24, 36)), *step(channels, channels, 3), conv(channels, classes, bias=True))
    return V3Plus(trunk.low_channels, inputs, width, classes) if kind == "deeplabv3plus" else DilatedSum(inputs, classes)


class Deeplab(nn.Module):
    """For inference: dropout is left out. The arguments are those of an exported config.json."""

    def __init__(self, head, classes, layers=50, width=64, stride_in="first", output_stride=8, multi_grid=True, **_):
        super().__init__()
        self.aligned = head != "deeplabv3"
        self.backbone = Trunk(layers, width, stride_in, output_stride, multi_grid)
        self.classifier = make_head(head, self.backbone, width, classes)

    def forward(self, images):
        return resized(self.classifier(*self.backbone(images)), images, self.aligned)


def load(folder):
    from safetensors.torch import load_file
    model = Deeplab(**json.loads(pathlib.Path(folder, "config.json").read_text()))
    model.load_state_dict(load_file(pathlib.Path(folder, "model.safetensors")))
    return model.eval()


def predict(model, image):
    """The probability of each class for each pixel of a Pillow image: (classes, height, width)."""
    import numpy
    pixels = torch.from_numpy(numpy.array(image.convert("RGB"))).float()
    x = (pixels - torch.tensor([123.675, 116.28, 103.53])) / torch.tensor([58.395, 57.12, 57.375])
    with torch.no_grad():
        return model(x.permute(2, 0, 1)[None])[0].softmax(0)


if __name__ == "__main__":
    from PIL import Image, ImageOps
    folder, photo, mask = sys.argv[1:]
    image = ImageOps.exif_transpose(Image.open(photo))
    Image.fromarray(predict(load(folder), image).argmax(0).byte().numpy()).save(mask)
