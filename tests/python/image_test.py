"""Images of Tandem beside those of Pillow, torchvision and OpenCV, where these are installed."""

import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

from torchvision_peer import add_torchvision

IMAGE_TOOL = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "image_tool"
RGB, GREY, INDICES = 0, 1, 2
NEAREST, BILINEAR = 0, 1


def numbers(values):
    return " ".join(repr(float(value)) for value in values)


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for package in ("PIL", "cv2", "numpy"):
            if importlib.util.find_spec(package) is None:
                raise unittest.SkipTest(f"{sys.executable} has no {package}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.tool = subprocess.Popen([IMAGE_TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.tool.communicate)

    def answer(self, operation, source, target, *values):
        self.tool.stdin.write(f"{operation} {source} {target} {numbers(values)}\n")
        self.tool.stdin.flush()
        return self.tool.stdout.readline().strip()

    def pixels(self, path):
        import numpy
        header, _, body = path.read_bytes().partition(b"\n")
        shape = [int(word) for word in header.split()]
        return numpy.frombuffer(body, numpy.uint8).reshape(shape if shape[2] > 1 else shape[:2])

    def write_raw(self, array):
        shape = array.shape if array.ndim == 3 else (*array.shape, 1)
        path = self.folder / "in.raw"
        path.write_bytes("{} {} {}\n".format(*shape).encode() + array.tobytes())
        return path

    def decode(self, content, kind=RGB, least_side=0, orient=True):
        source, target = self.folder / "in", self.folder / "out.raw"
        source.write_bytes(content)
        self.assertEqual(self.answer("decode", source, target, kind, least_side, orient), "ok")
        return self.pixels(target)

    def apply(self, operation, array, *values):
        target = self.folder / "out.raw"
        self.assertEqual(self.answer(operation, self.write_raw(array), target, *values), "ok")
        return self.pixels(target)

    def encode(self, operation, array, *values):
        target = self.folder / "out"
        self.assertEqual(self.answer(operation, self.write_raw(array), target, *values), "ok")
        return target.read_bytes()

    def assert_near(self, ours, theirs, levels=1, what=""):
        import numpy
        theirs = numpy.asarray(theirs)
        self.assertEqual(ours.shape, theirs.shape, what)
        apart = numpy.abs(ours.astype(int) - theirs.astype(int))
        self.assertLessEqual(apart.max(), levels, f"{what}: {(apart > levels).sum()} of {apart.size} values")


def pillow_of(array):
    """Four channels as CMYK, whose values are taken as they are: RGBA is multiplied by its alpha before it is resized."""
    from PIL import Image
    if array.ndim == 3 and array.shape[2] == 4:
        return Image.frombytes("CMYK", array.shape[1::-1], array.tobytes())
    return Image.fromarray(array)


def random_image(height, width, channels=3, seed=0):
    import numpy
    shape = (height, width, channels) if channels > 1 else (height, width)
    return numpy.random.default_rng(seed).integers(0, 256, shape, dtype=numpy.uint8)


def smooth_image(height, width, channels=3):
    """Something like a photograph: waves, with some noise."""
    import numpy
    y, x = numpy.mgrid[:height, :width]
    planes = [127 + 100 * numpy.sin(x / (7 + 5 * c) + c) * numpy.cos(y / (11 - 2 * c)) for c in range(channels)]
    noise = numpy.random.default_rng(1).normal(0, 5, (height, width, channels))
    return (numpy.stack(planes, -1) + noise).clip(0, 255).astype(numpy.uint8).squeeze()


def file_of(array, kind, **options):
    from PIL import Image
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


def png_of(rows, depth, colour, palette=b"", transparency=b"", interlaced=False, size=None):
    """A PNG from packed rows, without filters; interlaced: `rows` are those of the seven passes."""
    import struct
    import zlib

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", size[1], size[0], depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + (chunk(b"PLTE", palette) if palette else b"")
            + (chunk(b"tRNS", transparency) if transparency else b"")
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


def packed(values, depth):
    """Rows of samples, each `depth` bits, most significant first."""
    rows = []
    for row in values:
        bits = "".join(format(int(value), f"0{depth}b") for value in row)
        bits += "0" * (-len(bits) % 8)
        rows.append(int(bits, 2).to_bytes(len(bits) // 8, "big"))
    return rows


PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def interlaced_rows(values, depth):
    """`values` has a row of pixels for each row, a pixel being a tuple of samples."""
    rows = []
    for top, left, down, right in PASSES:
        part = values[top::down, left::right]
        if part.size:
            rows += packed(part.reshape(part.shape[0], -1), depth)
    return rows


class PngFiles(ImageTest):
    def each_png(self):
        """Every colour type and depth of the format: (name, file, samples, depth, colour type, palette)."""
        import numpy
        random = numpy.random.default_rng(3)
        for colour, channels, depths in ((0, 1, (1, 2, 4, 8, 16)), (2, 3, (8, 16)), (3, 1, (1, 2, 4, 8)), (4, 2, (8, 16)), (6, 4, (8, 16))):
            for depth in depths:
                values = random.integers(0, 1 << depth, (13, 21, channels))
                palette = random.integers(0, 256, (1 << depth, 3), dtype=numpy.uint8) if colour == 3 else None
                for interlaced in (False, True):
                    rows = interlaced_rows(values, depth) if interlaced else packed(values.reshape(13, -1), depth)
                    for transparency in (b"", {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: b"\0\x80"}.get(colour, b"")):
                        file = png_of(rows, depth, colour, palette.tobytes() if colour == 3 else b"", transparency, interlaced, (13, 21))
                        yield f"colour type {colour}, {depth} bits, interlaced {interlaced}, {transparency}", file, values, depth, colour, palette

    def expected_rgb(self, values, depth, colour, palette):
        import numpy
        if colour == 3:
            return palette[values[..., 0]]
        upper = (values >> 8 if depth == 16 else values * (255 // ((1 << depth) - 1))).astype(numpy.uint8)
        return upper[..., :3] if colour in (2, 6) else upper[..., [0, 0, 0]]

    def test_of_every_kind_are_decoded_to_the_values_they_hold(self):
        for name, file, values, depth, colour, palette in self.each_png():
            self.assert_near(self.decode(file), self.expected_rgb(values, depth, colour, palette), 0, name)

    def test_of_every_kind_are_decoded_as_by_pillow(self):
        from PIL import Image
        warnings.filterwarnings("ignore", "Palette images with Transparency")
        for name, file, _, depth, colour, _ in self.each_png():
            if depth == 16 and colour == 0:
                continue  # Pillow keeps 16 bits of grey, and cuts at 255
            image = Image.open(io.BytesIO(file))
            self.assert_near(self.decode(file), image.convert("RGB"), 0, name)
            self.assert_near(self.decode(file, GREY), image.convert("RGB").convert("L"), 0, name)

    def test_keep_indices(self):
        for name, file, values, depth, colour, _ in self.each_png():
            if colour in (0, 3, 4) and depth <= 8:
                self.assert_near(self.decode(file, INDICES), values[..., 0], 0, name)

    def test_written_by_ours_are_read_by_pillow(self):
        import numpy
        from PIL import Image
        for channels in (1, 3, 4):
            array = random_image(17, 31, channels)
            self.assert_near(array, Image.open(io.BytesIO(self.encode("encode_png", array))), 0)
        labels, palette = random_image(17, 31, 1) % 21, random_image(21, 3, 1)
        image = Image.open(io.BytesIO(self.encode("encode_png", labels, *palette.flatten())))
        self.assertEqual((image.mode, image.getpalette()[:63]), ("P", palette.flatten().tolist()))
        self.assert_near(labels, image, 0)
        self.assert_near(palette[labels], image.convert("RGB"), 0)
        self.assertLess(len(self.encode("encode_png", numpy.zeros((400, 400), numpy.uint8))), 1000)


class JpegFiles(ImageTest):
    def test_are_decoded_as_by_pillow(self):
        from PIL import Image
        for height, width in ((375, 500), (17, 31), (8, 8), (1, 1), (64, 33)):
            for subsampling in (0, 1, 2):
                for progressive in (False, True):
                    array = smooth_image(max(height, 2), max(width, 2))[:height, :width]
                    file = file_of(array, "JPEG", quality=90, subsampling=subsampling, progressive=progressive)
                    what = f"{height} x {width}, {subsampling}, {progressive}"
                    image = Image.open(io.BytesIO(file)).convert("RGB")
                    self.assert_near(self.decode(file), image, what=what)
                    self.assert_near(self.decode(file, GREY), image.convert("L"), what=what)

    def test_of_grey_are_decoded_as_by_pillow(self):
        from PIL import Image
        file = file_of(smooth_image(50, 70, 1), "JPEG", quality=80)
        image = Image.open(io.BytesIO(file))
        self.assert_near(self.decode(file, GREY), image)
        self.assert_near(self.decode(file), image.convert("RGB"))

    def test_are_decoded_smaller_as_by_pillows_draft_mode(self):
        from PIL import Image
        for height, width, least_side, expected in ((375, 500, 180, (188, 250)), (375, 500, 188, (375, 500)), (375, 500, 90, (94, 125)),
                                                    (375, 500, 40, (47, 63)), (800, 640, 80, (100, 80)), (375, 500, 3, (47, 63))):
            file = file_of(smooth_image(height, width), "JPEG", quality=90)
            image = Image.open(io.BytesIO(file))
            if expected != (height, width):
                image.draft("RGB", (least_side, least_side))
            ours = self.decode(file, least_side=least_side)
            self.assertEqual(ours.shape[:2], expected)
            self.assert_near(ours, image.convert("RGB"), what=str(least_side))

    def test_are_turned_as_exif_says(self):
        from PIL import Image, ImageOps
        for orientation in range(0, 10):
            for endian in ("<", ">"):
                exif = Image.Exif()
                exif.endian = endian
                exif[0x010E], exif[0x0112] = "words before it", orientation
                file = file_of(smooth_image(20, 33), "JPEG", quality=95, subsampling=0, exif=exif)
                image = Image.open(io.BytesIO(file))
                what = f"orientation {orientation} {endian}"
                self.assert_near(self.decode(file), ImageOps.exif_transpose(image), what=what)
                self.assert_near(self.decode(file, orient=False), image, what=what)

    def test_written_by_ours_are_those_of_pillow(self):
        from PIL import Image
        for quality in (30, 75, 95):
            for channels in (1, 3):
                array = smooth_image(60, 83, channels)
                ours = Image.open(io.BytesIO(self.encode("encode_jpeg", array, quality)))
                self.assert_near(numpy_of(ours), Image.open(io.BytesIO(file_of(array, "JPEG", quality=quality))))

    def test_that_are_truncated_or_of_print_are_one_sentence(self):
        from PIL import Image
        whole = file_of(smooth_image(60, 83), "JPEG")
        cmyk = io.BytesIO()
        Image.new("CMYK", (8, 8)).save(cmyk, "JPEG")
        for content, words in ((whole[:len(whole) // 2], "Premature end"), (whole[:-2], "Premature end"), (whole[:100], "Premature end"),
                               (cmyk.getvalue(), "CMYK")):
            (self.folder / "in").write_bytes(content)
            answer = self.answer("decode", self.folder / "in", self.folder / "out", RGB, 0, 1)
            self.assertRegex(answer, f"^error: .*in is a JPEG .*{words}.* [|] .+")


def numpy_of(image):
    import numpy
    return numpy.asarray(image)


class AsPillow(ImageTest):
    SIZES = ((40, 50), (20, 25), (80, 100), (33, 17), (7, 90), (1, 1), (41, 50), (40, 51), (200, 3))

    def test_resizes(self):
        from PIL import Image
        for channels in (1, 3, 4):
            for make in (random_image, smooth_image):
                array = make(40, 50, channels)
                for height, width in self.SIZES:
                    for ours, theirs, levels in (("resize_nearest", Image.NEAREST, 0), ("resize_bilinear", Image.BILINEAR, 1)):
                        expected = pillow_of(array).resize((width, height), theirs)
                        self.assert_near(self.apply(ours, array, height, width), expected, levels, f"{ours} {channels} {height} x {width}")

    def test_resizes_photographs_by_any_factor(self):
        from PIL import Image
        array = smooth_image(375, 500)
        for factor in (0.5, 0.61, 0.83, 1.01, 1.37, 1.9, 2):
            height, width = round(375 * factor), round(500 * factor)
            expected = pillow_of(array).resize((width, height), Image.BILINEAR)
            self.assert_near(self.apply("resize_bilinear", array, height, width), expected, 0, str(factor))

    def test_rotates(self):
        from PIL import Image
        for channels, fill in ((1, (255,)), (3, (124, 116, 104)), (4, (1, 2, 3, 4))):
            for shape in ((40, 50), (41, 41), (75, 30)):
                array = random_image(*shape, channels)
                for degrees in (0, 3.7, -9.99, 10, 45, 90, 180, 270, -90, 359.5, 1e-4, 720.25):
                    for ours, theirs, levels in ((NEAREST, Image.NEAREST, 0), (BILINEAR, Image.BILINEAR, 1)):
                        expected = pillow_of(array).rotate(degrees, theirs, fillcolor=fill if channels > 1 else fill[0])
                        self.assert_near(self.apply("rotate", array, degrees, ours, *fill), expected, levels, f"{channels} {shape} {degrees} {ours}")

    def test_warps(self):
        from PIL import Image
        random = __import__("numpy").random.default_rng(5)
        for i in range(60):
            channels = (1, 3, 4)[i % 3]
            array = random_image(30, 45, channels, seed=i)
            fill = random.integers(0, 256, channels).tolist()
            matrix = random.normal([1, 0, 0, 0, 1, 0], [0.5, 0.5, 20, 0.5, 0.5, 20])
            if i % 4 == 0:
                matrix[1] = matrix[3] = 0
            for ours, theirs, levels in ((NEAREST, Image.NEAREST, 0), (BILINEAR, Image.BILINEAR, 1)):
                expected = pillow_of(array).transform((51, 37), Image.AFFINE, matrix.tolist(), theirs,
                                                            fillcolor=tuple(fill) if channels > 1 else fill[0])
                self.assert_near(self.apply("affine", array, 37, 51, *matrix, ours, *fill), expected, levels, f"{matrix} {ours}")

    def test_flips_and_crops(self):
        import numpy
        for channels, fill in ((1, (7,)), (3, (124, 116, 104)), (4, (9, 9, 9, 9))):
            array = random_image(20, 30, channels)
            self.assert_near(self.apply("flip_horizontal", array), array[:, ::-1], 0)
            wide = numpy.empty((120, 130, channels), numpy.uint8)
            wide[:] = fill
            wide[50:70, 50:80] = array.reshape(20, 30, channels)
            for top, left in ((0, 0), (3, 5), (-4, -6), (18, 28), (-40, 2), (2, -40), (25, 2), (2, 35)):
                expected = wide[50 + top:65 + top, 50 + left:72 + left].squeeze()
                self.assert_near(self.apply("crop", array, 15, 22, top, left, *fill), expected, 0, f"{top}, {left}")


def on_a_border(size, out_size):
    """Which of `out_size` centres lie between two of `size` pixels, so that rounding decides for the one or the other."""
    import numpy
    places = (numpy.arange(out_size) + 0.5) * size / out_size
    return abs(places - places.round()) < 1e-3


class AsTorchvision(ImageTest):
    """Transforms v2 of tensors; of Pillow images where torchvision computes places of tensors in float and rounds them otherwise."""

    FACTORS = (0.51, 0.61, 0.83, 1.37, 1.91)
    MEAN = (124, 116, 104)

    def setUp(self):
        if not add_torchvision():
            self.skipTest(f"{sys.executable} has no torchvision")
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms.v2 import functional
        self.functional, self.modes = functional, InterpolationMode

    def images(self):
        return ((channels, make(375, 500, channels)) for channels in (1, 3) for make in (random_image, smooth_image))

    def of_tensor(self, change, array):
        import torch
        tensor = torch.from_numpy(array.reshape(*array.shape[:2], -1).copy()).permute(2, 0, 1).contiguous()
        return change(tensor).permute(1, 2, 0).numpy().squeeze()

    def test_resizes(self):
        for channels, array in self.images():
            for factor in self.FACTORS:
                size = [round(375 * factor), round(500 * factor)]
                expected = self.of_tensor(lambda image: self.functional.resize(image, size, self.modes.BILINEAR, antialias=True), array)
                self.assert_near(self.apply("resize_bilinear", array, *size), expected, what=f"{channels} {factor}")

    def test_resizes_labels(self):
        """As NEAREST_EXACT: NEAREST takes the upper left pixel of those that one stands for."""
        import numpy
        for channels, array in self.images():
            for factor in self.FACTORS:
                size = [round(375 * factor), round(500 * factor)]
                expected = self.of_tensor(lambda image: self.functional.resize(image, size, self.modes.NEAREST_EXACT), array)
                rows, columns = (~on_a_border(*sizes) for sizes in zip(array.shape, size))
                self.assertGreater(min(rows.mean(), columns.mean()), 0.9)
                chosen = numpy.ix_(rows, columns)
                self.assert_near(self.apply("resize_nearest", array, *size)[chosen], expected[chosen], 0, f"{channels} {factor}")

    def assert_warps(self, ours, theirs, what):
        """`ours` of an array, interpolation and fill; `theirs` of an image, mode and fill."""
        for channels, array in self.images():
            fill = self.MEAN[:channels]
            expected = numpy_of(theirs(pillow_of(array), self.modes.NEAREST, list(fill)))
            self.assert_near(ours(array, NEAREST, fill), expected, 0, f"{what} {channels}")
            expected = numpy_of(theirs(pillow_of(array), self.modes.BILINEAR, list(fill)))
            self.assert_near(ours(array, BILINEAR, fill), expected, what=f"{what} {channels}")
            # Of tensors, what is a pixel from the edge is mixed with the fill; Pillow and ours mix it with nothing.
            expected = self.of_tensor(lambda image: theirs(image, self.modes.BILINEAR, list(fill)), array)
            white = self.of_tensor(lambda image: theirs(image.new_full(image.shape, 255), self.modes.BILINEAR, [0] * channels), array)
            self.assertGreater((white == 255).mean(), 0.4)
            self.assert_near(ours(array, BILINEAR, fill)[white == 255], expected[white == 255], what=f"{what} {channels}, tensor")

    def test_rotates(self):
        for degrees in (3.7, -9.99, 10, 45):
            self.assert_warps(lambda array, mode, fill: self.apply("rotate", array, degrees, mode, *fill),
                              lambda image, mode, fill: self.functional.rotate(image, degrees, mode, fill=fill), degrees)

    def test_warps(self):
        """Around the centre, (250, 187.5): scaled, sheared, rotated, then shifted; ours has the inverse."""
        import numpy
        from math import cos, radians, sin, tan
        for degrees, shift, scale, shear in ((7.3, (11, -5), 0.83, (4, 0)), (-30, (-20, 9), 1.6, (0, 0))):
            angle, lean = radians(degrees), radians(shear[0])
            turned = numpy.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]]) @ [[1, -tan(lean)], [0, 1]]
            back, centre = numpy.linalg.inv(scale * turned), numpy.array([250, 187.5])
            matrix = numpy.c_[back, centre - back @ (centre + shift)].flatten()
            self.assert_warps(lambda array, mode, fill: self.apply("affine", array, 375, 500, *matrix, mode, *fill),
                              lambda image, mode, fill: self.functional.affine(image, degrees, list(shift), scale, list(shear), mode, fill=fill),
                              degrees)

    def test_blurs_flips_and_crops(self):
        for channels, array in self.images():
            for sigma in (0.6, 1.1, 2.3):
                expected = self.of_tensor(lambda image: self.functional.gaussian_blur(image, [5, 5], [sigma, sigma]), array)
                self.assert_near(self.apply("gaussian_blur", array, 5, sigma), expected, what=f"{channels} {sigma}")
            self.assert_near(self.apply("flip_horizontal", array), self.of_tensor(self.functional.horizontal_flip, array), 0)
            padded = self.of_tensor(lambda image: self.functional.crop(self.functional.pad(image, [30, 20, 0, 0], fill=9), 0, 0, 321, 321), array)
            self.assert_near(self.apply("crop", array, 321, 321, -20, -30, *[9] * channels), padded, 0)


class AsOpenCv(ImageTest):
    def test_resizes(self):
        import cv2
        for channels in (1, 3, 4):
            array = random_image(40, 50, channels)
            for height, width in AsPillow.SIZES:
                expected = cv2.resize(array, (width, height), interpolation=cv2.INTER_LINEAR)
                self.assert_near(self.apply("resize_linear_opencv", array, height, width), expected, what=f"{channels} {height} x {width}")

    def test_warps(self):
        import cv2
        import numpy
        random = numpy.random.default_rng(5)
        for i in range(60):
            channels = (1, 3, 4)[i % 3]
            array = random_image(30, 45, channels, seed=i)
            fill = random.integers(0, 256, channels).tolist()
            matrix = random.normal([1, 0, 0, 0, 1, 0], [0.5, 0.5, 20, 0.5, 0.5, 20])
            expected = cv2.warpAffine(array, matrix.reshape(2, 3), (51, 37), flags=cv2.INTER_LINEAR, borderValue=fill)
            self.assert_near(self.apply("warp_affine_opencv", array, 37, 51, *matrix, *fill), expected, what=str(matrix))

    def test_blurs(self):
        import cv2
        for channels in (1, 3, 4):
            for shape in ((40, 50), (3, 2), (1, 1), (5, 300)):
                array = random_image(*shape, channels)
                for size in (1, 3, 5, 7, 9, 11, 21):
                    for sigma in (0, 0.6, 1.1, 2.3, 5):
                        expected = cv2.GaussianBlur(array, (size, size), sigma)
                        self.assert_near(self.apply("gaussian_blur", array, size, sigma), expected, what=f"{channels} {shape} {size} {sigma}")

    def test_turns_colours_to_hue_and_back(self):
        import cv2
        array = random_image(300, 300)
        array[:, :40] //= 16  # dark and grey colours
        array[:, 40:60, 1:] = array[:, 40:60, :1]
        expected = cv2.cvtColor(array, cv2.COLOR_RGB2HSV)
        self.assert_near(self.apply("rgb_to_hsv", array), expected, 0)
        self.assert_near(self.apply("hsv_to_rgb", expected), cv2.cvtColor(expected, cv2.COLOR_HSV2RGB))

    def test_jitters_as_ultralytics(self):
        import cv2
        import numpy
        array = random_image(60, 70)
        for gains in ((0, 0, 0), (0.015, 0.7, 0.4), (-0.4, -0.7, -0.4), (0.9, 0.1, -0.2)):
            hue, saturation, value = cv2.split(cv2.cvtColor(array, cv2.COLOR_RGB2HSV))
            x = numpy.arange(256, dtype=numpy.float64)
            tables = [((x + gains[0] * 180) % 180).astype(numpy.uint8), (x * (gains[1] + 1)).clip(0, 255).astype(numpy.uint8),
                      (x * (gains[2] + 1)).clip(0, 255).astype(numpy.uint8)]
            planes = [cv2.LUT(plane, table) for plane, table in zip((hue, saturation, value), tables)]
            expected = cv2.cvtColor(cv2.merge(planes), cv2.COLOR_HSV2RGB)
            self.assert_near(self.apply("jitter_hsv", array, gains[0], gains[1] + 1, gains[2] + 1), expected, what=str(gains))

    def test_letterboxes_as_ultralytics(self):
        import cv2
        for shape in ((40, 50), (50, 40), (120, 33), (64, 64)):
            for size in ((64, 64), (33, 90), (31, 31)):
                for enlarge in (False, True):
                    array = smooth_image(*shape)
                    ratio = min(size[0] / shape[0], size[1] / shape[1])
                    ratio = ratio if enlarge else min(ratio, 1)
                    inner = round(shape[1] * ratio), round(shape[0] * ratio)
                    across, down = (size[1] - inner[0]) / 2, (size[0] - inner[1]) / 2
                    resized = array if inner == shape[::-1] else cv2.resize(array, inner, interpolation=cv2.INTER_LINEAR)
                    expected = cv2.copyMakeBorder(resized, round(down - 0.1), round(down + 0.1), round(across - 0.1), round(across + 0.1),
                                                  cv2.BORDER_CONSTANT, value=(114, 114, 114))
                    ours = self.apply("letterbox", array, *size, enlarge, 114, 114, 114)
                    self.assert_near(ours, expected, what=f"{shape} {size} {enlarge}")


if __name__ == "__main__":
    unittest.main()
