"""Event files of Tandem, read by TensorBoard's own code where that is installed, and by a reader that is written out here."""

import importlib.util
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

WRITE_EVENTS = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "write_events"
PIXELS = bytes(i % 251 for i in range(200 * 301 * 3))
TEXT = "**bold** and 摘要"


def write(folder, first, last):
    """Adds a file with these steps and returns its path."""
    subprocess.run([WRITE_EVENTS, folder, str(first), str(last)], check=True, timeout=60)
    return max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def unfiltered(kind, row, above, pixel):
    """A row of a PNG as it was before one of the five filters: none, or less what is left, above, their mean, or the nearest of three."""
    row = bytearray(row)
    for i, value in enumerate(row):
        left, up, corner = (row[i - pixel], above[i], above[i - pixel]) if i >= pixel else (0, above[i], 0)
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda other: abs(guess - other))
        row[i] = (value + (0, left, up, (left + up) // 2, nearest)[kind]) & 0xFF
    return bytes(row)


def pixels_of(png):
    """The pixels of a PNG, and its width, height and colour type."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        content = png[at + 8:at + 8 + length]
        assert zlib.crc32(name + content) == struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0]
        chunks[name], at = chunks.get(name, b"") + content, at + 12 + length
    width, height, _, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    rows = zlib.decompress(chunks[b"IDAT"])
    step = len(rows) // height
    pixels, above = b"", bytes(step - 1)
    for at in range(0, len(rows), step):
        above = unfiltered(rows[at], rows[at + 1:at + step], above, 1 if colour == 0 else 3)
        pixels += above
    return pixels, (width, height, colour)


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def unmask(masked):
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated << 15 | rotated >> 17) & 0xFFFFFFFF


def records(content):
    """The records of a file, their checksums checked."""
    at = 0
    while at < len(content):
        length, length_crc = struct.unpack("<QI", content[at:at + 12])
        assert unmask(length_crc) == crc32c(content[at:at + 8])
        body = content[at + 12:at + 12 + length]
        assert unmask(struct.unpack("<I", content[at + 12 + length:at + 16 + length])[0]) == crc32c(body)
        yield body
        at += 16 + length


def fields(message):
    """A message in wire format as {number: value}, the last of each number."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            found[number] = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            found[number], at = message[at:at + size], at + size
    return found


class EventFile(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def values(self, content):
        """(step, tag, value) of each summary."""
        for event in map(fields, records(content)):
            if 5 in event:
                value = fields(fields(event[5])[1])
                yield event[2], value.pop(1).decode(), value

    def test_has_a_name_that_tensorboard_looks_for(self):
        self.assertRegex(write(self.folder, 1, 1).name, r"^events\.out\.tfevents\.\d{10}\..+\.\d+\.0$")

    def test_begins_with_its_version_and_the_step_it_starts_at(self):
        version, start = list(map(fields, records(write(self.folder, 121, 121).read_bytes())))[:2]
        self.assertEqual(version[3], b"brain.Event:2")
        self.assertEqual((start[2], fields(start[7])), (121, {1: 1}))

    def test_holds_scalars_text_and_images(self):
        found = {(tag, step): value for step, tag, value in self.values(write(self.folder, 299, 301).read_bytes())}
        self.assertEqual([struct.unpack("<f", found["loss/train", step][2])[0] for step in (299, 300, 301)], [149.5, 150, 150.5])
        text = found["samples/摘要", 299]
        self.assertEqual(fields(text[8]), {1: 7, 2: b"\x12\x02\x08\x01", 8: TEXT.encode()})
        self.assertEqual((fields(fields(text[9])[1]), fields(text[9])[4]), ({1: b"text"}, 2))
        colour, grey = (fields(found[f"images/{name}", 299][4]) for name in ("colour", "grey"))
        self.assertEqual((colour[1], colour[2], colour[3]), (200, 301, 3))
        self.assertEqual(pixels_of(colour[4]), (PIXELS, (301, 200, 2)))
        self.assertEqual(pixels_of(grey[4]), (bytes([128] * 6), (3, 2, 0)))


class RealTensorBoard(unittest.TestCase):
    def setUp(self):
        if importlib.util.find_spec("tensorboard") is None:
            self.skipTest(f"{sys.executable} has no tensorboard")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def read(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        accumulator = EventAccumulator(str(self.folder), size_guidance={"scalars": 0, "images": 0, "tensors": 0})
        return accumulator.Reload()

    def test_reads_scalars_text_and_images(self):
        write(self.folder, 299, 301)
        events = self.read()
        self.assertEqual([(e.step, e.value) for e in events.Scalars("loss/train")], [(299, 149.5), (300, 150), (301, 150.5)])
        self.assertEqual(events.SummaryMetadata("samples/摘要").plugin_data.plugin_name, "text")
        self.assertEqual(events.Tensors("samples/摘要")[0].tensor_proto.string_val[0].decode(), TEXT)
        image = events.Images("images/colour")[0]
        self.assertEqual((image.height, image.width, image.step), (200, 301, 299))
        self.assertEqual(pixels_of(image.encoded_image_string)[0], PIXELS)

    def test_reads_a_file_with_a_torn_last_record(self):
        path = write(self.folder, 1, 3)
        path.write_bytes(path.read_bytes()[:-100])
        events = self.read()
        self.assertEqual([e.step for e in events.Scalars("loss/train")], [1, 2, 3])
        self.assertEqual(events.Tags()["images"], ["images/colour"])

    def test_forgets_steps_that_a_resumed_run_does_again(self):
        first = write(self.folder, 1, 5)
        first.rename(self.folder / "events.out.tfevents.1000000000.host.1.0")  # an earlier second
        write(self.folder, 4, 6)
        self.assertEqual([e.step for e in self.read().Scalars("loss/train")], [1, 2, 3, 4, 5, 6])

    def test_shows_text_and_scalars_to_its_plugins(self):
        from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
        write(self.folder, 1, 2)
        events = EventAccumulator(str(self.folder)).Reload()
        self.assertEqual(set(events.ActivePlugins()), {"scalars", "text", "images"})


if __name__ == "__main__":
    unittest.main()
