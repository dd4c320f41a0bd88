#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/check_range.h"
#include "base/fd.h"
#include "base/text.h"
#include "recipe/output.h"
#include "recipe/run_commands.h"
#include "recipes/summarize/commands.h"
#include "recipes/summarize/rows.h"
#include "text/csv.h"
#include "text/tokenizer.h"
#include "text/train_vocabulary.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

struct TokenizerOptions {
  std::int64_t size = 50257;
  std::int64_t min_count = 2;
  fs::path output = {};
  ColumnOptions columns = {};
};

template <class Visitor>
void visit_fields(TokenizerOptions& o, Visitor&& field) {
  field("size", o.size, "vocabulary size: 256 bytes, <|endoftext|>, and the merges");
  field("min-count", o.min_count, "least frequency of a pair to be merged");
  field("output", o.output, "folder to write vocab.json, merges.txt and tokenizer.json to");
  field("", o.columns, "columns of CSV files");
}

void validate(const TokenizerOptions& o) {
  if (o.output.empty()) fail(ErrorKind::Config, "output is empty", "name a folder: --output tokenizer");
  if (fs::exists(o.output)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which exists already"), "name another, or remove it");
  }
  check_range("size", o.size, 257, 1'000'000);  // at least the bytes and <|endoftext|>
  check_range("min-count", o.min_count, 1, kMostCount);
}

void add_texts(Words& texts, const fs::path& path, const ColumnOptions& columns) {
  if (path.extension() != ".csv") return texts.push_back(read_file(path));
  for (SummarySample& row : read_rows(path, columns, Needs::Summary)) {
    texts.push_back(std::move(row.dialogue));
    texts.push_back(std::move(row.summary));
  }
}

std::string write_tokenizer(const TokenizerOptions& options, std::span<const std::string> files) {
  if (files.empty()) fail(ErrorKind::Usage, "tokenizer train: no file was named", "name text files or CSVs");
  Words texts;
  for (const std::string& path : files) add_texts(texts, path, options.columns);
  const Tokenizer tokenizer(train_vocabulary(texts, {.size = options.size, .min_count = options.min_count}));
  make_new_folder(options.output, [&](const fs::path& folder) { tokenizer.save(folder); });
  return str("wrote ", tokenizer.size(), " tokens to ", options.output, '\n');
}

struct ConvertOptions {
  fs::path tokenizer = {};
};

template <class Visitor>
void visit_fields(ConvertOptions& o, Visitor&& field) {
  field("tokenizer", o.tokenizer, "tokenizer folder, or a run folder");
}

void validate(const ConvertOptions& o) {
  if (o.tokenizer.empty()) fail(ErrorKind::Config, "tokenizer is empty", "name its folder: --tokenizer FOLDER");
}

std::string encode_line(Tokenizer& tokenizer, std::string_view line) {
  Words ids;
  for (const TokenId id : tokenizer.encode(line)) ids.push_back(str(id));
  return join(ids, " ");
}

std::string decode_line(Tokenizer& tokenizer, std::string_view line) {
  std::vector<TokenId> ids;
  for (const std::string& word : split(line, ' ')) {
    if (trim(word).empty()) continue;
    const auto id = to_integer(trim(word));
    if (!id || *id < 0 || *id >= tokenizer.size()) {
      fail(ErrorKind::Data, str("tokenizer decode: '", word, "' is no token"),
           str("give whole numbers from 0 to ", tokenizer.size() - 1, ", with spaces between them"));
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return tokenizer.decode(ids);
}

std::string convert(const ConvertOptions& options, std::string (*line_of)(Tokenizer&, std::string_view)) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_folder(options.tokenizer));
  auto text = read_all(STDIN_FILENO);
  if (!text) fail(ErrorKind::Data, str("cannot read standard input: ", errno_text(errno)), "pipe a file in");
  if (text->ends_with('\n'))
    text->pop_back();
  else if (text->empty())
    return "";
  std::string lines;
  for (const std::string& line : split(*text, '\n')) lines += str(line_of(tokenizer, line), '\n');
  return lines;
}

RecipeCommand tokenizer_train_command() {
  return {.name = "train",
          .about = "train a byte-level BPE tokenizer like that of GPT-2, on text files or on columns of CSVs",
          .run = plain_command<TokenizerOptions>(write_tokenizer),
          .examples = {"tandem summarize tokenizer train --size 8192 --output tokenizer train.csv"},
          .arguments = "file [file ...]"};
}

RecipeCommand convert_command(const std::string& name, const std::string& about,
                              std::string (*line_of)(Tokenizer&, std::string_view)) {
  return {.name = name,
          .about = about,
          .run = plain_command<ConvertOptions>(
              [line_of](const ConvertOptions& options, auto /*arguments*/) { return convert(options, line_of); }),
          .examples = {str("tandem summarize tokenizer ", name, " --tokenizer FOLDER < lines.txt")}};
}

}  // namespace

RecipeCommand tokenizer_command() {
  const CommandTable table{.name = "tandem summarize tokenizer",
                           .about = "Trains a tokenizer, or converts text with one.",
                           .example = "tandem summarize tokenizer train --output tokenizer train.csv",
                           .commands = {tokenizer_train_command(),
                                        convert_command("encode", "convert lines of text to lines of ids", encode_line),
                                        convert_command("decode", "convert lines of ids to text", decode_line)}};
  return {.name = "tokenizer",
          .about = "train a tokenizer; encode and decode lines of standard input",
          .run = [table](const Words& words, std::size_t place, const ProgramText&) {
            return run_commands(table, words, place);
          }};
}

}  // namespace tandem::summarize
