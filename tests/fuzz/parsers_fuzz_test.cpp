#include <gtest/gtest.h>
#include <sys/mman.h>
#include <tandem/config.h>
#include <tandem/error.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "config/sample_config_test.h"
#include "fuzz/fuzzer.h"
#include "image/codec.h"
#include "text/csv.h"
#include "text/tokenizer.h"
#include "text/vocabulary_files.h"

namespace tandem {
namespace {

const std::vector<std::string> kJsonWords = {"{",
                                             "}",
                                             "[",
                                             "]",
                                             ",",
                                             ":",
                                             "\"",
                                             "\\u0000",
                                             "\\ud800",
                                             "null",
                                             "true",
                                             "-1",
                                             "1e400",
                                             "0.1",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "4294967296",
                                             "\xEF\xBB\xBF"};

std::vector<std::string> json_words_and(std::vector<std::string> words) {
  words.insert(words.end(), kJsonWords.begin(), kJsonWords.end());
  return words;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

struct ParsedFile {
  SafetensorsHeader header;
  std::string_view data;
};

ParsedFile parse_safetensors(std::string_view file) {
  const std::uint64_t length = header_length(file.substr(0, 8), file.size(), "file");
  const std::string_view data = file.substr(8 + length);
  return {.header = parse_header(file.substr(8, length), data.size(), "file"), .data = data};
}

// Writes the length of the header that it has: as far as the last brace.
void mend_length(std::string& file) {
  const std::size_t end = file.rfind('}');
  if (file.size() < 8 || end == std::string::npos || end < 8) return;
  const std::uint64_t length = end + 1 - 8;
  std::memcpy(file.data(), &length, sizeof(length));
}

// What is taken has a place for every byte, and is the same after it is written and read again.
void parse_and_write_safetensors(const std::string& file) {
  const auto [header, data] = parse_safetensors(file);
  std::vector<TensorBytes> tensors;
  for (const TensorEntry& entry : header.tensors) {
    require(entry.begin <= entry.end && entry.end <= data.size(), "a tensor lies outside of the file");
    const std::string_view bytes = data.substr(entry.begin, entry.end - entry.begin);
    tensors.push_back({.name = entry.name, .dtype = entry.dtype, .shape = entry.shape, .bytes = bytes});
  }
  const FileContent content = safetensors_content(tensors, header.metadata);
  std::string again = content.text;
  for (const std::string_view bytes : content.bytes) again += bytes;
  const SafetensorsHeader reread = parse_safetensors(again).header;
  require(reread.metadata == header.metadata, "other metadata after writing");
  require(reread.tensors.size() == header.tensors.size(), "other tensors after writing");
}

TEST(ParsersFuzz, Safetensors) {
  fuzz({.name = "safetensors",
        .words = json_words_and({"\"dtype\"", "\"shape\"", "\"data_offsets\"", "\"F32\"", "\"F4\"", "\"BOOL\"",
                                 "\"__metadata__\":", R"("x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)",
                                 "[0,0]", std::string(8, '\0')}),
        .mend = mend_length,
        .parse = parse_and_write_safetensors});
}

TEST(ParsersFuzz, Json) {
  fuzz({.name = "json",
        .words = json_words_and({"{\"a\":", "[[[[", "\\n"}),
        .mend = {},
        .parse = [](const std::string& text) {
          const Json json = parse_json(text, "state.json");
          require(parse_json(json_text(json), "again") == json, "another value after writing");
          require(parse_json(json_text_indented(json), "again") == json, "another value after writing it indented");
        }});
}

TEST(ParsersFuzz, Done) {
  fuzz({.name = "done",
        .words = json_words_and(
            {"\"step\":", "\"number\":", "\"metric\":", "\"files\":", "\"size\":", "\"crc32c\":", "../"}),
        .mend = {},
        .parse = [](const std::string& text) {
          const Manifest manifest = parse_manifest(text, "DONE");
          const Manifest again = parse_manifest(manifest_text(manifest), "again");
          require(again.step == manifest.step && again.number == manifest.number && again.metric == manifest.metric &&
                      again.files.size() == manifest.files.size(),
                  "another manifest after writing");
        }});
}

void encode_and_decode(const Vocabulary& vocabulary) {
  Tokenizer tokenizer(vocabulary);
  constexpr std::string_view kText = "ab aab\u00E9 \U0001F600<|endoftext|> ab";
  require(tokenizer.decode(tokenizer.encode(kText)) == kText, "another text after decoding");
}

TEST(ParsersFuzz, TokenizerJson) {
  fuzz({.name = "tokenizer_json",
        .words = json_words_and({"\"vocab\":", "\"merges\":", "\"added_tokens\":", "\"id\":", "\"content\":", "\"a b\"",
                                 "[\"a\",\"b\"]", "\"ab\":256", "258", "\"ByteLevel\"", "\"BPE\"", "\u0120"}),
        .mend = {},
        .parse = [](const std::string& text) {
          const Vocabulary vocabulary = parse_tokenizer_json({text, "tokenizer.json"});
          encode_and_decode(vocabulary);
          const Vocabulary again = parse_tokenizer_json({tokenizer_json_text(vocabulary), "again"});
          require(again.tokens == vocabulary.tokens && again.merges == vocabulary.merges,
                  "another vocabulary after writing");
        }});
}

TEST(ParsersFuzz, Merges) {
  const NamedText whole{read_file(std::filesystem::path(TANDEM_FUZZ_CORPUS) / "tokenizer_json" / "pairs"),
                        "vocab.json"};
  const NamedText vocab{json_text(parse_json(whole.text, "pairs").at("model").at("vocab")), "vocab.json"};
  fuzz({.name = "merges",
        .words = {"#version: 0.2\n", "a b\n", "\u0120 ab\n", "\u0120a b\n", "\r\n", " ", "\n", "<|endoftext|>"},
        .mend = {},
        .parse = [&](const std::string& text) {
          encode_and_decode(parse_vocabulary(vocab, {text, "merges.txt"}));
        }});
}

TEST(ParsersFuzz, Config) {
  const Fd file(::memfd_create("config.yaml", MFD_CLOEXEC));
  const std::string path = str("/proc/self/fd/", file.get());
  fuzz({.name = "config",
        .words = {"\n",          "  ",           "- ",           ": ",   "[",     "]",    "{",      "}",     "&a ",
                  "*a",          "<<: ",         "!!str ",       "|\n",  ">\n",   "# ",   "\"",     "'",     "---\n",
                  "~",           "batch_size: ", "optimizer:\n", "lr: ", "1e400", "0x10", "11h30m", "25MiB", "\xC2\x85",
                  "\xEF\xBB\xBF"},
        .mend = {},
        .parse = [&](const std::string& text) {
          put(file.get(), text);
          SampleConfig config;
          std::vector<Field> fields = fields_of(config);
          load_yaml(fields, path);
        }});
}

// What is taken is the same table after it is written and read again.
TEST(ParsersFuzz, Csv) {
  const auto rows_of = [](const CsvTable& table) {
    std::vector<std::vector<std::string>> rows(table.num_rows());
    for (const std::string& name : table.columns()) {
      const auto fields = table.column(name);
      for (std::size_t row = 0; row < rows.size(); ++row) rows[row].emplace_back(fields.at(row));
    }
    return rows;
  };
  fuzz({.name = "csv",
        .words = {",", "\"", "\"\"", "\n", "\r", "\r\n", "\n\n", "a,b\n", "\",\"", "\"\n\"", "\xEF\xBB\xBF",
                  std::string(1, '\0')},
        .mend = {},
        .parse = [&](const std::string& text) {
          const CsvTable table = CsvTable::parse(text, "t.csv");
          const CsvTable again = CsvTable::parse(csv_text(table.columns(), rows_of(table)), "again");
          require(again.columns() == table.columns(), "other columns after writing");
          require(rows_of(again) == rows_of(table), "other rows after writing");
        }});
}

// What is taken is the same image after it is written and read again.
void decode_in_every_way(const std::string& file) {
  constexpr std::int64_t kMostPixelsHere = 1 << 14;
  const DecodeOptions options{.most_pixels = kMostPixelsHere};
  const Image image = decode_image(file, "file", options);
  require(decode_image(encode_png(image), "again") == image, "another image after writing");
  const ImageHeader header = decode_image_header(file, "file");
  require(header.height * header.width == image.height * image.width, "another size in the header");
  require(std::ssize(image.pixels) <= 3 * kMostPixelsHere, "more pixels than are allowed");
  decode_image(file, "file", {.kind = PixelKind::Grey, .least_side = 4, .orient = false});
  try {
    decode_image(file, "file", {.kind = PixelKind::Indices});
  } catch (const Error&) {  // colour
  }
}

TEST(ParsersFuzz, Jpeg) {
  using namespace std::string_literals;
  fuzz({.name = "jpeg",
        .words = {"\xFF\xD8"s, "\xFF\xD9"s, "\xFF\xC0\0\x11\x08"s, "\xFF\xC2"s, "\xFF\xC4"s, "\xFF\xDA"s, "\xFF\xDB"s,
                  "\xFF\xDD\0\4\0\1"s, "\xFF\xD0"s, "\xFF\xE1"s, "\xFF\xEE\0\x0E\x41\x64obe"s, "Exif\0\0"s,
                  "II*\0\x08\0\0\0"s, "MM\0*\0\0\0\x08"s, "\x12\1\3\0\1\0\0\0\6\0"s, "\1\x12\0\3\0\0\0\1\0\6"s,
                  "\xFF\xFF"s, "\0\0"s},
        .mend = {},
        .parse = decode_in_every_way});
}

std::uint32_t crc_of_chunk(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

std::uint32_t big_endian_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

// Writes the checksum of each chunk that it has.
void mend_checksums(std::string& file) {
  constexpr std::size_t kFrame = 12;  // length, name, checksum
  for (std::size_t at = 8; at + kFrame <= file.size();) {
    const std::size_t length = big_endian_at(file, at);
    if (length > file.size() - at - kFrame) return;
    const std::uint32_t crc = crc_of_chunk(std::string_view(file).substr(at + 4, length + 4));
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += kFrame + length;
  }
}

TEST(ParsersFuzz, Png) {
  using namespace std::string_literals;
  fuzz({.name = "png",
        .words = {"IHDR"s, "PLTE"s, "tRNS"s, "IDAT"s, "IEND"s, "iCCP"s, "zTXt"s, "gAMA"s, "\0\0\0\x0DIHDR"s,
                  "\0\0\0\0IEND\xAE\x42\x60\x82"s, "\0\0\0\3PLTE\1\2\3"s, "\0\0\0\1tRNS\0"s, "\x10\0"s, "\x08\3"s,
                  "\1\0"s, "\0\0\0\1"s, "\x7F\xFF\xFF\xFF"s, "\x89PNG\r\n\x1a\n"s},
        .mend = mend_checksums,
        .parse = decode_in_every_way});
}

}  // namespace
}  // namespace tandem
